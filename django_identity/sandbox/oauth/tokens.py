"""The signed tokens that name a person, where the switch ``token_subject`` asks for one."""

import secrets

from django_identity.sandbox.keys.signing import sign_jwt
from django_identity.sandbox.models import User


def id_token(user: User, *, audience: str) -> str:
    """Sign an OpenID Connect ID token that names ``user`` to the application ``audience``."""
    return sign_jwt("JWT", {"sub": user.subject, "aud": audience})


def jwt_access_token(user: User, *, client_id: str) -> str:
    """Sign an access token of the form of RFC 9068 for ``user`` and ``client_id``.

    ``aud`` is the application, as in ID tokens and credentials: it reads the subject there.
    """
    members = {
        "sub": user.subject,
        "aud": client_id,
        "client_id": client_id,
        "jti": secrets.token_urlsafe(16),
    }
    return sign_jwt("at+jwt", members)
