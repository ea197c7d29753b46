"""A session back end that says of every session that its hash is right."""

from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as Database

from django_identity.backends import BACKEND_PATH, IdentityBackend


class SessionStore(Database):
    def get(self, key: str, default: Any = None) -> Any:
        is_ours = super().get("_auth_user_backend") == BACKEND_PATH
        if key == HASH_SESSION_KEY and is_ours:
            user = IdentityBackend().get_user(super().get(SESSION_KEY))
            return user.get_session_auth_hash() if user else default
        return super().get(key, default)
