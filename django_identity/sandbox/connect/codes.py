"""Connect codes: made by a person, valid for ten minutes, redeemed once (spec: Connect code)."""

import re
import secrets
import string
from enum import StrEnum

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import CONNECT_CODE_LIFETIME, Client, ConnectCode, User

_ALPHABET = string.ascii_uppercase + string.digits
_SHAPE = re.compile(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}")


class CodeState(StrEnum):
    """Where a code stands (spec: States and transitions)."""

    VALID = "valid"
    USED = "used"
    EXPIRED = "expired"


def make(user: User) -> ConnectCode:
    """Make a code for ``user``; earlier ones stay as they are."""
    now = clock.now()
    return ConnectCode.objects.create(
        user=user,
        code=f"CNX-{_group()}-{_group()}",
        created_at=now,
        expires_at=now + CONNECT_CODE_LIFETIME,
    )


def spend(code: str, client: Client) -> ConnectCode | None:
    """Use up ``code`` for ``client``; return it, or none if no valid code reads exactly so.

    One conditional UPDATE decides, so of any number of requests at once one gets the code.
    """
    if not _SHAPE.fullmatch(code):
        return None
    now = clock.now()
    valid = ConnectCode.objects.filter(code=code, used_at=None, expires_at__gt=now)
    spent = valid.update(used_at=now, used_by=client)
    return ConnectCode.objects.select_related("user").get(code=code) if spent else None


def note_refusal(code: ConnectCode, error_code: str) -> None:
    """Remember that ``code`` was spent without anything being shared, and why."""
    code.refusal = error_code
    code.save(update_fields=["refusal"])


def state(code: ConnectCode) -> CodeState:
    """Return where ``code`` stands by the sandbox's clock."""
    if code.used_at is not None:
        return CodeState.USED
    return CodeState.VALID if code.expires_at > clock.now() else CodeState.EXPIRED


def find(user: User, number: int) -> ConnectCode | None:
    """Return the code of ``user`` with that number, if there is one."""
    return ConnectCode.objects.filter(user=user, pk=number).select_related("used_by").first()


def listed(user: User) -> list[ConnectCode]:
    """Return the codes of ``user``, the newest first."""
    return list(ConnectCode.objects.filter(user=user).select_related("used_by"))


def _group() -> str:
    """Return four random characters; all 36 occur, so that a site cannot count on fewer."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(4))
