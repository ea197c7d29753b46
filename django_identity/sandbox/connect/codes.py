"""Connect codes: created by a person, valid for ten minutes, redeemed once (spec: Connect code)."""

import re
import secrets
import string
from enum import StrEnum

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import CONNECT_CODE_LIFETIME, Client, ConnectCode, User

_ALPHABET = string.ascii_uppercase + string.digits
_SHAPE = re.compile(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}")


class CodeState(StrEnum):
    """The state of a code (spec: States and transitions)."""

    VALID = "valid"
    USED = "used"
    EXPIRED = "expired"


def make(user: User) -> ConnectCode:
    """Create a code for ``user``. Earlier codes stay valid."""
    now = clock.now()
    return ConnectCode.objects.create(
        user=user,
        code=f"CNX-{_group()}-{_group()}",
        created_at=now,
        expires_at=now + CONNECT_CODE_LIFETIME,
    )


def spend(code: str, client: Client) -> ConnectCode | None:
    """Spend ``code`` for ``client``. Return it, or None if there is no such valid code.

    One conditional UPDATE decides, so only one of several concurrent requests gets the code.
    """
    if not _SHAPE.fullmatch(code):
        return None
    now = clock.now()
    valid = ConnectCode.objects.filter(code=code, used_at=None, expires_at__gt=now)
    spent = valid.update(used_at=now, used_by=client)
    return ConnectCode.objects.select_related("user").get(code=code) if spent else None


def note_refusal(code: ConnectCode, error_code: str) -> None:
    """Record why ``code`` was spent without sharing data."""
    code.refusal = error_code
    code.save(update_fields=["refusal"])


def state(code: ConnectCode) -> CodeState:
    """Return the state of ``code`` by the sandbox's clock."""
    if code.used_at is not None:
        return CodeState.USED
    return CodeState.VALID if code.expires_at > clock.now() else CodeState.EXPIRED


def find(user: User, number: int) -> ConnectCode | None:
    return ConnectCode.objects.filter(user=user, pk=number).select_related("used_by").first()


def listed(user: User) -> list[ConnectCode]:
    """Return the codes of ``user``, newest first."""
    return list(ConnectCode.objects.filter(user=user).select_related("used_by"))


def _group() -> str:
    """Return four random characters out of all 36 letters and digits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(4))
