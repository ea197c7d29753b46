"""The addresses of the test suite's site."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.user.get_username())


urlpatterns = [
    path("", home, name="home"),
    path("accounts/login/", LoginView.as_view(), name="local-login"),
    path("admin/", admin.site.urls),
    path("identity/", include("django_identity.urls")),
]
