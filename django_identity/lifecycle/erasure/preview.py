"""What an erasure or a revocation would end, for the operator who is asked to confirm it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django_identity import policy
from django_identity.conf import Application
from django_identity.lifecycle.erasure import dossier, sessions
from django_identity.models import LinkedIdentity


class AccountFate(StrEnum):
    """What an erasure does to the site's account."""

    KEPT = "kept"
    EMPTIED = "emptied"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Preview:
    """Table -> number of rows that go. ``sessions`` is None if they cannot be counted."""

    counts: Mapping[str, int]
    sessions: int | None
    account: AccountFate


def preview_of(identity: LinkedIdentity, *, application: Application) -> Preview:
    """What an erasure of ``identity`` would delete. Nothing is changed."""
    site = policy.load(application.policy)
    is_kept = site.keeps_account(identity.user, made_for_identity=identity.account_made)
    fate = AccountFate.DELETED if site.erasure == "delete" else AccountFate.EMPTIED
    place = (identity.application, identity.environment)
    forgotten = dossier.Forgotten(identity.subject_digest, identity.user_id, *place, stays=is_kept)
    return Preview(
        dossier.counts_of(forgotten),
        None if is_kept else sessions.count_of([identity.user_id]),
        AccountFate.KEPT if is_kept else fate,
    )


def sessions_ended_by(
    identities: Sequence[LinkedIdentity], *, backend_of: Callable[[str], str]
) -> int | None:
    """How many sessions end when ``identities`` are revoked, if known.

    ``backend_of``: the backend of the sessions that begin with an application.
    """
    users: defaultdict[str, list[Any]] = defaultdict(list)
    for identity in identities:
        users[backend_of(identity.application)].append(identity.user_id)
    counts = [sessions.count_of(ids, backend=backend) for backend, ids in users.items()]
    return None if None in counts else sum(count or 0 for count in counts)
