"""Rules of the package that are switched off, to see that the explorer misses each of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from unittest import mock

from django_identity import database
from django_identity.conf import Application
from django_identity.lifecycle import (
    effects,
    events,
    linking,
    sessions,
    tokens,
    unfinished,
)
from django_identity.models import LinkedIdentity, TokenGrant, WebhookEvent
from django_identity.models.querysets import LinkedIdentityQuerySet
from django_identity.service.webhooks import Event
from tests.interleavings.explorer import Found
from tests.interleavings.scenarios import Scenario

Broken = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Sabotage:
    """``broken``: the package without a rule. ``shown_by``: the invariant that breaks."""

    broken: Broken
    row: str
    shown_by: str

    def explore(self, *, seconds: float) -> Found:
        with self.broken():
            return Scenario.parse(self.row).explore(
                seconds=seconds, until=self.shown_by
            )


def apply_since_is_off() -> AbstractContextManager[object]:
    return mock.patch.object(events, "apply_since", return_value=None)


@contextmanager
def version_is_not_compared() -> Iterator[None]:
    """The second step takes any row of its subject for the one that its first step wrote."""
    written: dict[str, LinkedIdentity] = {}
    write_empty = linking._write_empty
    locked = LinkedIdentityQuerySet.locked_with_user

    def remember(*arguments: object, **how: object) -> LinkedIdentity:
        empty = write_empty(*arguments, **how)
        written[empty.subject_digest] = empty
        return empty

    def looks_the_same(
        rows: LinkedIdentityQuerySet, subject_digest: str
    ) -> LinkedIdentity | None:
        found = locked(rows, subject_digest)
        empty = written.get(subject_digest)
        if found is not None and empty is not None:
            empty.pk = found.pk
            empty.version = found.version
        return found

    with (
        mock.patch.object(linking, "_write_empty", remember),
        mock.patch.object(LinkedIdentityQuerySet, "locked_with_user", looks_the_same),
    ):
        yield


def epochs_are_not_raised() -> AbstractContextManager[object]:
    return mock.patch.object(sessions, "end_all", return_value=None)


def lease_is_ignored() -> AbstractContextManager[object]:
    return mock.patch.object(tokens, "lease", return_value=True)


def generation_is_not_compared() -> AbstractContextManager[object]:
    return mock.patch.object(
        tokens, "_unchanged", lambda grant: TokenGrant.objects.filter(pk=grant.pk)
    )


def events_are_applied_before_they_are_stored() -> AbstractContextManager[object]:
    stored = WebhookEvent.objects.stored

    def apply_then_store(application: Application, event: Event) -> WebhookEvent:
        row = WebhookEvent.of(application, event)
        with database.atomic():
            identity = LinkedIdentity.objects.locked(row.subject_digest)
            if identity is not None:
                effects.outcome_of(identity, row)
        row = stored(application, event)
        WebhookEvent.objects.filter(event_digest=row.event_digest).update(
            outcome="applied"
        )
        return row

    return mock.patch.object(WebhookEvent.objects, "stored", apply_then_store)


def nothing_is_taken_back() -> AbstractContextManager[object]:
    return mock.patch.object(unfinished, "take_back", return_value=None)


SABOTAGES: dict[str, Sabotage] = {
    "apply_since is off": Sabotage(
        apply_since_is_off, "nobody | sign-up + revoked | acts", "consent_is_given"
    ),
    "the second step does not look at version": Sabotage(
        version_is_not_compared,
        "older account | code + link | acts",
        "sign_ins_confirm",
    ),
    "epochs are not raised": Sabotage(
        epochs_are_not_raised,
        "known | signed out everywhere + sign-in | acts",
        "sessions_end",
    ),
    "the lease is ignored": Sabotage(
        lease_is_ignored,
        "known for hours | refresh + another refresh | acts",
        "tokens_are_sent_once",
    ),
    "generation is not compared": Sabotage(
        generation_is_not_compared,
        "known for hours | refresh + another refresh | acts",
        "grants_live",
    ),
    "events are applied before they are stored": Sabotage(
        events_are_applied_before_they_are_stored,
        "nobody | sign-up + revoked | acts",
        "consent_is_given",
    ),
    "take_back is off": Sabotage(
        nothing_is_taken_back,
        "nobody | sign-up + revoked | acts",
        "refusals_leave_nothing",
    ),
}
