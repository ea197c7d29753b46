"""The page after the sign-in, the same in each site."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path


def who(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.user.pk} {request.user}")


PAGES = [path("who/", who, name="who")]
