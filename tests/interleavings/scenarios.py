"""Who acts at once: the table of scenarios, and sabotages."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from unittest import mock

from django.contrib.auth.models import User

from django_identity import handlers
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said import events, grants
from django_identity.models import LinkedIdentity, SubjectLock, TokenGrant
from tests.interleavings import actors, invariants
from tests.interleavings.actors import ends, happens, known, signs_in, unapplied
from tests.interleavings.control import controlled
from tests.interleavings.explorer import Actor, Explorer, Found, Saved
from tests.interleavings.world import World

BEFORE: dict[str, Callable[[World], None]] = {
    "nobody": lambda world: None,
    "older account": actors.older,
    "known": known,
    "known, with password": partial(known, password="x"),
    "known for a day": partial(known, hours=25),
    "rejected for a day": partial(actors.rejected, hours=25),
    "unapplied revocation": partial(unapplied, what="consent.revoked"),
    "unapplied claim.revoked": partial(unapplied, what="claim.revoked"),
}
ACTORS: dict[str, Actor] = {
    "sign-up": signs_in,
    "sign-in": signs_in,
    "Bob's sign-up": partial(signs_in, subject="bob"),
    "renewal": partial(signs_in, inside=True),
    "link": partial(signs_in, inside=True),
    "code": actors.enters_code,
    "disconnected": partial(
        ends,
        what="disconnected",
        by=disconnecting.disconnect_user,
    ),
    "signed out everywhere": partial(
        ends,
        what="signed out",
        by=sessions.sign_out_everywhere,
    ),
    "erased by the person": partial(ends, what="erased", by=erasure.erase_account),
    "erased by an operator": partial(
        ends,
        what="erased",
        by=lambda user: interventions.erase(LinkedIdentity.objects.get(user=user)),
    ),
    "user deleted by the site": partial(ends, what="erased", by=User.delete),
    "revoked by an operator": partial(
        ends,
        what="revoked",
        by=lambda user: interventions.revoke(LinkedIdentity.objects.filter(user=user)),
    ),
    "re-fetch": actors.refetches,
    "refresh": actors.refreshes,
    "upkeep": actors.tends,
    "repeats": actors.repeats,
    "revoked twice": partial(happens, what="consent.revoked", times=2),
    "deletion twice": partial(happens, what="data.deletion_requested", times=2),
}
#: At the service. Of several events it delivers the last one first.
EVENTS = {
    "revoked": "consent.revoked",
    "granted and revoked, reversed": "consent.granted, consent.revoked",
    "deletion": "data.deletion_requested",
    "claim revoked": "claim.revoked",
    "claim issued": "claim.issued",
    "claim revoked and issued, reversed": "claim.revoked, claim.issued",
    "rejected": "kyc.rejected",
    "rejected and verified, reversed": "kyc.rejected, kyc.verified",
    "verified": "kyc.verified",
    "verified and rejected, reversed": "kyc.verified, kyc.rejected",
}

#: The rules that the rows hold. A row whose rule other rows hold too is a sample of it.
RULES = {
    "withdrawal": "A consent that ended is granted by no sign-in or code that began before.",
    "erasure": "Of a person who is erased nothing is left, and it is done once.",
    "going": "An identity that is deleted takes its data along, and nothing writes it again.",
    "replay": "What is delivered again half a year later changes nothing.",
    "crash": "What a crash left is applied by upkeep, once, beside whatever else happens.",
    "claims": "No credential from before its revocation proves a claim.",
    "level": "In the end the level is what the service says, in every order.",
    "tokens": "No refresh token is sent twice, and the newest tokens are the stored ones.",
    "sessions": "A session ends with what it rests on, and goes on otherwise.",
    "linking": "A subject is linked to one account, whoever comes at the same time.",
}
#: What there was before | who acts, in any order | how. ``one dies``: a crash at each step.
#: ``clock behind``, ``clock ahead``: the service's, by four minutes. ``kyc``: the level changes, so
#: the calls that read it are steps. ``replay``: half a year later everything is delivered again.
#: ``long``: not in the leg. The site has a handler for revocations. | which rule the row holds.
TABLE = """
nobody | sign-up + revoked twice | one dies | withdrawal
nobody | sign-up + revoked | one dies, clock behind | withdrawal
nobody | sign-up + revoked | one dies, clock ahead | withdrawal
nobody | sign-up + granted and revoked, reversed | one dies, long | withdrawal
nobody | sign-up + deletion twice | one dies | erasure
nobody | sign-up + deletion + upkeep | one dies, long | erasure
nobody | sign-up + another sign-up + revoked | long | linking
nobody | sign-up + claim revoked | one dies, clock ahead, long | claims
nobody | sign-up + rejected | one dies, kyc | level
nobody | sign-up + another sign-up | one dies, long | linking
nobody | sign-up + Bob's sign-up | one dies, long | linking
known | renewal + revoked | one dies | withdrawal
known | renewal + revoked + re-fetch | one dies, long | withdrawal
known | sign-in + rejected and verified, reversed | one dies, kyc, long | level
known | signed out everywhere + sign-in | one dies | sessions
known | erased by the person + sign-in | one dies, long | erasure
known | erased by the person + deletion | one dies | erasure
known | erased by an operator + revoked | one dies, long | erasure
known | erased by the person + sign-in + deletion | long | erasure
known | user deleted by the site + revoked | one dies | going
known | user deleted by the site + deletion | one dies | going
known | user deleted by the site + revoked + sign-in | long | going
known | re-fetch + claim revoked and issued, reversed | one dies | claims
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, long | level
known for a day | sign-in + re-fetch + rejected | kyc, long | level
rejected for a day | re-fetch + verified | one dies, kyc | level
rejected for a day | re-fetch + verified | one dies, kyc, clock behind, long | level
rejected for a day | re-fetch + verified | one dies, kyc, clock ahead, long | level
rejected for a day | re-fetch + verified and rejected, reversed | one dies, kyc, clock behind, long | level
known for a day | re-fetch + verified and rejected, reversed | one dies, kyc, long | level
known for a day | re-fetch + verified and rejected, reversed | one dies, kyc, clock behind, long | level
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, clock behind, long | level
known for a day | refresh + another refresh | one dies | tokens
known for a day | refresh + renewal | one dies | tokens
known for a day | refresh + another refresh + renewal | long | tokens
known, with password | disconnected + sign-in | one dies | sessions
known, with password | disconnected + revoked + re-fetch | one dies, long | going
older account | code + revoked | one dies | withdrawal
older account | code + deletion | one dies, long | erasure
older account | link + deletion | one dies, long | erasure
older account | code + sign-up + deletion | long | erasure
known | code + sign-in + deletion | long | erasure
older account | code + link | one dies, long | linking
older account | code + rejected | one dies, kyc, long | level
older account | code + rejected and verified, reversed | one dies, kyc, long | level
older account | code + sign-up + revoked | long | linking
known | code + revoked | one dies | withdrawal
known | revoked + sign-in | one dies, replay | replay
known | deletion + sign-up | one dies, replay | replay
known | revoked by an operator + sign-in | one dies | withdrawal
known | revoked by an operator + revoked + re-fetch | one dies, long | withdrawal
unapplied revocation | upkeep + sign-in | one dies | crash
unapplied claim.revoked | upkeep + claim issued + sign-in | long | crash
known | revoked twice + upkeep | one dies | crash
known | deletion + repeats | one dies | erasure
known | deletion + upkeep + another upkeep | long | erasure
known | revoked + deletion + rejected | long | erasure
known | erased by the person + revoked + claim revoked | long | erasure
known, with password | disconnected + revoked + claim revoked | long | going
unapplied revocation | upkeep + repeats | one dies | crash
unapplied revocation | upkeep + another upkeep | one dies, long | crash
"""  # noqa: E501  a scenario is one line


class Scenario(NamedTuple):
    """One row of the table, and its rule in words.

    ``broken``: the package without a rule, and what then does not hold.
    """

    row: str
    rule: str = ""
    broken: AbstractContextManager[object] = nullcontext()
    shown_by: str = ""

    def explore(self, *, seconds: float) -> Found:
        """Follow all orders, in a database that has nothing but its tables."""
        before, acting, how = self.row.split(" | ")
        minutes = 4 * (how.count("clock ahead") - how.count("clock behind"))
        quiet = ("profile",) if "kyc" in how else ("profile", "kyc")
        world = World(timedelta(minutes=minutes), quiet)
        named = {name: _actor(name) for name in acting.split(" + ")}
        endings = [invariants.all_is_delivered_again, invariants.upkeep_goes_on]
        if "replay" in how:
            endings.append(invariants.all_is_replayed)

        empty = Saved(world)
        explorer = Explorer(world, named, endings, seconds, self.shown_by)
        handlers.on_event("consent.revoked", name="the site's")(
            lambda event: explorer.world.handled.append(event.pk),
        )
        with controlled(explorer), self.broken:
            BEFORE[before](world)
            world.advance(minutes=1)
            found = explorer.explore(deaths=how.count("one dies"))
        empty.restored()
        handlers.forget("the site's")
        return found

    def is_well(self, found: Found) -> bool:
        """Whether it is clean, or the sabotage is found."""
        if self.shown_by:
            return self.shown_by in found.stories
        return found.is_whole and not found.stories


def _actor(name: str) -> Actor:
    name = name.removeprefix("another ")
    if name in EVENTS:
        return partial(happens, what=EVENTS[name])
    return ACTORS[name]


def _scenario(line: str) -> Scenario:
    row, _, rule = line.rpartition(" | ")
    return Scenario(row, RULES[rule])


SCENARIOS = {each.row: each for each in map(_scenario, TABLE.strip().splitlines())}

REVOKED = "nobody | sign-up + revoked | "
REFRESHED = "known for a day | refresh + another refresh | "
#: Rules of the package that are switched off, to see that the explorer misses each of them.
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
            grants,
            "_unchanged",
            lambda grant: TokenGrant.objects.filter(pk=grant.pk),
        ),
        shown_by=invariants.grants_live.__doc__,
    ),
}
