"""Rules of the package that are switched off, to see that the explorer misses each of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
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
from django_identity.service.webhooks import Event
from tests.interleavings.explorer import Found
from tests.interleavings.scenarios import Scenario

Broken = Callable[[], AbstractContextManager[object]]


class Sabotage(NamedTuple):
    """``broken``: the package without a rule. ``shown_by``: the invariant that breaks."""

    broken: Broken
    row: str
    shown_by: str

    def explore(self, *, seconds: float) -> Found:
        scenario = Scenario.parse(self.row)
        with self.broken():
            return scenario.explore(seconds=seconds, until=self.shown_by)


def apply_since_is_off() -> AbstractContextManager[object]:
    return mock.patch.object(events, "apply_since", return_value=None)


def version_is_not_compared() -> AbstractContextManager[object]:
    """The second step takes any row of its subject for the one that its first step wrote."""
    write_empty = linking._write_empty

    def write(*arguments: Any, **how: Any) -> LinkedIdentity:
        empty = write_empty(*arguments, **how)
        empty.version = mock.ANY
        return empty

    return mock.patch.object(linking, "_write_empty", write)


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
        apply_since_is_off, "nobody | sign-up + revoked | no crash", "consent_is_given"
    ),
    "the second step does not look at version": Sabotage(
        version_is_not_compared,
        "older account | code + link | no crash",
        "sign_ins_confirm",
    ),
    "epochs are not raised": Sabotage(
        epochs_are_not_raised,
        "known | signed out everywhere + sign-in | no crash",
        "sessions_end",
    ),
    "the lease is ignored": Sabotage(
        lease_is_ignored,
        "known for hours | refresh + another refresh | no crash",
        "tokens_are_sent_once",
    ),
    "generation is not compared": Sabotage(
        generation_is_not_compared,
        "known for hours | refresh + another refresh | no crash",
        "grants_live",
    ),
    "events are applied before they are stored": Sabotage(
        events_are_applied_before_they_are_stored,
        "nobody | sign-up + revoked | no crash",
        "consent_is_given",
    ),
    "take_back is off": Sabotage(
        nothing_is_taken_back,
        "nobody | sign-up + revoked | no crash",
        "refusals_leave_nothing",
    ),
}
