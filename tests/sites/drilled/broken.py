"""What a broken shop does to its sessions and requests, and its policy."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore as Database
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.policy import IdentityPolicy

GetResponse = Callable[[HttpRequest], HttpResponse]


class SessionStore(Database):
    """It says of every session that its hash is right."""

    def get(self, key: str, default: Any = None) -> Any:
        is_ours = super().get("_auth_user_backend") == BACKEND_PATH
        if key == HASH_SESSION_KEY and is_ours:
            user = IdentityBackend().get_user(super().get(SESSION_KEY))
            return user.get_session_auth_hash() if user else default
        return super().get(key, default)


def replaced_user(get_response: GetResponse) -> GetResponse:
    """The user of the session's key, whatever has ended the session."""

    def answer(request: HttpRequest) -> HttpResponse:
        key: Any = request.session.get(SESSION_KEY)
        if key is not None:
            user = get_user_model().objects.filter(pk=key).first()
            request.user = user or request.user
        return get_response(request)

    return answer


def no_posts(get_response: GetResponse) -> GetResponse:
    """Nobody may post to the pages that are named."""

    def answer(request: HttpRequest) -> HttpResponse:
        named = any(name in request.path for name in settings.SITE_BREAKS)
        if request.method == "POST" and named:
            return HttpResponseForbidden()
        return get_response(request)

    return answer


class ShopPolicy(IdentityPolicy):
    def may_sign_up(self, *, claims: Any, **_: Any) -> bool:
        return "adults" not in settings.SITE_BREAKS or "age_over_18" in claims

    def claim_value(self, claim_type: str, value: Any) -> str | None:
        if "claim_value" in settings.SITE_BREAKS:
            return "PT"
        return super().claim_value(claim_type, value)

    def erase_user(self, user: Any) -> None:
        from tests.sites.drilled.models import Order  # noqa: PLC0415  the models are ready now

        if "row" not in settings.SITE_BREAKS:
            Order.objects.filter(user=user).update(name="")
        super().erase_user(user)
