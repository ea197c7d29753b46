"""A sign-in that is answered with a token, as ``docs/api.md`` shows."""

from __future__ import annotations

from typing import Any

from rest_framework.authtoken.models import Token

from django_identity.api.views import CallbackView


class TokenCallback(CallbackView):
    def sign_in(self, request: Any, user: Any, identity: Any) -> dict[str, object]:
        token, _ = Token.objects.get_or_create(user=user)
        return {"token": token.key}
