"""Step-up: whether the person has come back from the service lately, in this session."""

from collections.abc import MutableMapping
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from django_identity.lifecycle.ground.sessions import mark_of
from django_identity.lifecycle.standing.standing import Standing
from django_identity.models import LinkedIdentity
from django_identity.reasons import Reason, Shortfall

#: Of the session: whose sign-in it was, and when. It ends with the identity and its epoch.
KEY = "identity_came_back"


def note_return(
    session: SessionBase,
    identity: LinkedIdentity,
    *,
    former_key: str | None,
) -> None:
    """Note that the person of ``identity`` came back from the service now.

    The session gets a new key: whoever knew the former one stays unconfirmed. A sign-in has given
    it one already.
    """
    if session.session_key == former_key:
        session.cycle_key()
    now = timezone.now().timestamp()
    session[KEY] = [mark_of(identity), now]


def shortfall(
    standing: Standing,
    session: MutableMapping[str, Any] | None,
    *,
    minutes: float,
) -> Shortfall | None:
    """Why the person has to come back again, or None if they did within ``minutes``.

    A time from the future counts as missing: a clock was wrong, or the cookie is forged. Another
    app may have written anything under the name.
    """
    if standing.barrier is not None:
        return standing.barrier
    ours = mark_of(standing.identity)
    now = timezone.now().timestamp()
    match (session or {}).get(KEY):
        case [mark, float(at)] if mark == ours and 0 <= now - at <= minutes * 60:
            return None
    return Shortfall(Reason.NOT_RECENT)
