"""Who acts at once: the table of scenarios."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from django.contrib.auth.models import User

from django_identity import conf, handlers
from django_identity.lifecycle import disconnecting, erasure, sessions
from django_identity.lifecycle.operators import interventions
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
    "known twice": actors.known_twice,
    "unapplied revocation": partial(unapplied, what="consent.revoked"),
    "unapplied claim.revoked": partial(unapplied, what="claim.revoked"),
}
#: ``second``: at the second application.
ACTORS: dict[str, Actor] = {
    "sign-up": signs_in,
    "sign-in": signs_in,
    "Bob's sign-up": partial(signs_in, subject="bob"),
    "sign-in at the second": partial(signs_in, application="second"),
    "renewal": partial(signs_in, inside=True),
    "link": partial(signs_in, inside=True),
    "code": actors.enters_code,
    "disconnected": partial(
        ends,
        what="disconnected",
        by=lambda user: disconnecting.leave(user, application=conf.application()),
    ),
    "signed out everywhere": partial(
        ends,
        what="signed out",
        by=lambda user: sessions.end_all(user, application="default"),
    ),
    "erased by the person": partial(ends, what="erased", by=erasure.erase_account),
    "erased by an operator": partial(
        ends,
        what="erased",
        by=lambda user: interventions.erase(user.linked_identities.get()),
    ),
    "user deleted by the site": partial(ends, what="erased", by=User.delete),
    "revoked by an operator": partial(
        ends,
        what="revoked",
        by=lambda user: interventions.revoke(user.linked_identities.all()),
    ),
    "re-fetch": actors.refetches,
    "refresh": actors.refreshes,
    "upkeep": actors.tends,
    "revoked twice": partial(happens, what="consent.revoked", times=2),
    "revoked at the second": partial(
        happens, what="consent.revoked", application="second"
    ),
    "deletion twice": partial(happens, what="data.deletion_requested", times=2),
    "deletion at the second": partial(
        happens, what="data.deletion_requested", application="second"
    ),
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

#: What there was before | who acts, in any order | how. ``one dies``: a crash at each step.
#: ``clock behind``, ``clock ahead``: the service's, by four minutes. ``kyc``: the level changes, so
#: the calls that read it are steps. ``replay``: half a year later everything is delivered again.
#: ``long``: not in the leg. The site has a handler for revocations.
TABLE = """
nobody | sign-up + revoked twice | one dies
nobody | sign-up + revoked | one dies, clock behind
nobody | sign-up + revoked | one dies, clock ahead
nobody | sign-up + granted and revoked, reversed | one dies, long
nobody | sign-up + deletion twice | one dies
nobody | sign-up + claim revoked | one dies, long
nobody | sign-up + claim revoked | one dies, clock ahead, long
nobody | sign-up + rejected | one dies, kyc
nobody | sign-up + another sign-up | one dies, long
nobody | sign-up + Bob's sign-up | one dies, long
known | renewal + revoked | one dies
known | renewal + revoked | one dies, clock behind, long
known | renewal + revoked + re-fetch | one dies, long
known | sign-in + rejected and verified, reversed | one dies, kyc, long
known | sign-in + rejected | one dies, kyc, clock behind, long
known | signed out everywhere + sign-in | one dies
known | erased by the person + sign-in | one dies, long
known | erased by the person + deletion | one dies
known | erased by an operator + revoked | one dies, long
known | erased by the person + sign-in + deletion | long
known | user deleted by the site + revoked | one dies
known | user deleted by the site + deletion | one dies
known | user deleted by the site + revoked + sign-in | long
known | re-fetch + claim revoked and issued, reversed | one dies
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, long
known for a day | sign-in + re-fetch + rejected | kyc, long
rejected for a day | re-fetch + verified | one dies, kyc
rejected for a day | re-fetch + verified | one dies, kyc, clock behind, long
rejected for a day | re-fetch + verified | one dies, kyc, clock ahead, long
rejected for a day | sign-in + verified | one dies, kyc, clock behind, long
rejected for a day | re-fetch + verified and rejected, reversed | one dies, kyc, clock behind, long
known for a day | re-fetch + verified and rejected, reversed | one dies, kyc, long
known for a day | re-fetch + verified and rejected, reversed | one dies, kyc, clock behind, long
known for a day | re-fetch + verified and rejected, reversed | one dies, kyc, clock ahead, long
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, clock behind, long
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, clock ahead, long
known for a day | refresh + another refresh + revoked | one dies, long
known for a day | refresh + another refresh | one dies
known for a day | refresh + renewal | one dies
known for a day | refresh + another refresh + renewal | long
known, with password | disconnected + revoked + re-fetch | one dies, long
older account | code + revoked twice | one dies, long
older account | code + link | one dies, long
older account | code + rejected | one dies, kyc, long
older account | code + rejected and verified, reversed | one dies, kyc, long
older account | code + rejected | one dies, kyc, clock behind, long
older account | code + sign-up + revoked | long
known | code + revoked | one dies
known twice | revoked at the second + sign-in | one dies
known twice | disconnected + sign-in at the second | one dies
known twice | deletion at the second + sign-in | one dies
known twice | revoked + revoked at the second | one dies
known twice | erased by the person + deletion at the second | one dies, long
known | revoked + sign-in | one dies, replay
known | deletion + sign-up | one dies, replay
known | revoked by an operator + sign-in | one dies
known | revoked by an operator + revoked + re-fetch | one dies, long
unapplied revocation | upkeep + sign-in | one dies
unapplied claim.revoked | upkeep + claim issued + sign-in | long
known | revoked twice + upkeep | one dies
unapplied revocation | upkeep + another upkeep | one dies, long
"""


class Scenario(NamedTuple):
    """One row of the table. ``broken``: the package without a rule, and what then does not hold."""

    row: str
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
            lambda event: explorer.world.handled.append(event.pk)
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


SCENARIOS = {row: Scenario(row) for row in TABLE.strip().splitlines()}
