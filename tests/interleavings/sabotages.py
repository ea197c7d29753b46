"""Rules of the package that are switched off, to see that the explorer misses each of them."""

from typing import Any
from unittest import mock

from django_identity import database
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
from tests.interleavings import invariants
from tests.interleavings.scenarios import Scenario

REVOKED = "nobody | sign-up + revoked | "
REFRESHED = "known for a day | refresh + another refresh | "
write_empty = linking._write_empty
stored = WebhookEvent.objects.stored


def write_any_version(*arguments: Any, **how: Any) -> LinkedIdentity:
    """The second step takes any row of its subject for the one that its first step wrote."""
    empty = write_empty(*arguments, **how)
    empty.version = mock.ANY
    return empty


def apply_then_store(event: Event) -> WebhookEvent:
    row = WebhookEvent.of(event)
    with database.atomic():
        identity = LinkedIdentity.objects.locked(row.subject_digest)
        if identity is not None:
            effects.outcome_of(identity, row)
    row = stored(event)
    WebhookEvent.objects.update(outcome="applied")
    return row


SABOTAGES = {
    "apply_since is off": Scenario(
        REVOKED,
        broken=mock.patch.object(events, "apply_since"),
        shown_by=invariants.consents_are_granted.__doc__,
    ),
    "the second step does not look at version": Scenario(
        "older account | code + link | ",
        broken=mock.patch.object(linking, "_write_empty", write_any_version),
        shown_by=invariants.sign_ins_confirm.__doc__,
    ),
    "epochs are not raised": Scenario(
        "known | signed out everywhere + sign-in | ",
        broken=mock.patch.object(sessions, "end_all"),
        shown_by=invariants.sessions_end.__doc__,
    ),
    "the lease is ignored": Scenario(
        REFRESHED,
        broken=mock.patch.object(tokens, "lease", return_value=True),
        shown_by=invariants.nothing_is_sent_twice.__doc__,
    ),
    "generation is not compared": Scenario(
        REFRESHED,
        broken=mock.patch.object(
            tokens, "_unchanged", lambda grant: TokenGrant.objects.filter(pk=grant.pk)
        ),
        shown_by=invariants.grants_live.__doc__,
    ),
    "events are applied before they are stored": Scenario(
        REVOKED,
        broken=mock.patch.object(WebhookEvent.objects, "stored", apply_then_store),
        shown_by=invariants.consents_are_granted.__doc__,
    ),
    "take_back is off": Scenario(
        REVOKED,
        broken=mock.patch.object(unfinished, "take_back"),
        shown_by=invariants.refusals_leave_nothing.__doc__,
    ),
}
