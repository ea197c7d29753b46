"""Rules of the package that are switched off, to see that the explorer misses each of them."""

from unittest import mock

from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.said import events, grants
from django_identity.models import SubjectLock, TokenGrant
from tests.interleavings import invariants
from tests.interleavings.scenarios import Scenario

REVOKED = "nobody | sign-up + revoked | "
REFRESHED = "known for a day | refresh + another refresh | "
SABOTAGES = {
    "nobody hears the events since": Scenario(
        REVOKED,
        broken=mock.patch.object(events, "heard_since", return_value=[]),
        shown_by=invariants.consents_are_granted.__doc__,
    ),
    "the subject is not held": Scenario(
        REVOKED,
        broken=mock.patch.object(SubjectLock, "hold"),
        shown_by=invariants.consents_are_granted.__doc__,
    ),
    "epochs are not raised": Scenario(
        "known | signed out everywhere + sign-in | ",
        broken=mock.patch.object(sessions, "end_all"),
        shown_by=invariants.sessions_end.__doc__,
    ),
    "the lease is ignored": Scenario(
        REFRESHED,
        broken=mock.patch.object(grants, "lease", return_value=True),
        shown_by=invariants.nothing_is_sent_twice.__doc__,
    ),
    "generation is not compared": Scenario(
        REFRESHED,
        broken=mock.patch.object(
            grants, "_unchanged", lambda grant: TokenGrant.objects.filter(pk=grant.pk)
        ),
        shown_by=invariants.grants_live.__doc__,
    ),
}
