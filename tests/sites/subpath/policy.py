"""Reads people's addresses from the proxy's header."""

from __future__ import annotations

from django.http import HttpRequest

from django_identity.policy import IdentityPolicy


class BehindAProxy(IdentityPolicy):
    def client_address(self, request: HttpRequest) -> str:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
