"""Who acts at once: the table of scenarios."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from django.contrib.auth.models import User

from django_identity import handlers
from django_identity.lifecycle import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import WebhookEvent
from tests.interleavings import actors, invariants
from tests.interleavings.actors import happens, is_erased, known, signs_in, unapplied
from tests.interleavings.control import controlled
from tests.interleavings.explorer import Explorer, Found, Run, Saved
from tests.interleavings.world import MINUTE

HOUR = 60
DAY = 24 * HOUR
BEFORE: dict[str, Callable[[Run], None]] = {
    "nobody": actors.nobody,
    "one address": actors.with_one_address,
    "older account": actors.older,
    "known": known,
    "known, with password": partial(known, password=True),
    "known for hours": partial(known, minutes=2 * HOUR),
    "known for a day": partial(known, minutes=DAY + HOUR),
    "known twice": actors.known_twice,
    "unapplied revocation": partial(unapplied, what="revoke"),
    "unapplied claim.revoked": partial(unapplied, what="revoke_claim"),
}
#: ``second``: at the second application.
ACTORS: dict[str, Callable[[Run], str]] = {
    "sign-up": signs_in,
    "sign-in": signs_in,
    "Bob's sign-up": partial(signs_in, subject="bob"),
    "sign-in at the second": partial(signs_in, alias="second"),
    "renewal": partial(signs_in, inside=True),
    "link": partial(signs_in, inside=True),
    "code": actors.enters_code,
    "disconnected": actors.disconnects,
    "signed out everywhere": actors.signs_out_everywhere,
    "erased by the person": partial(is_erased, by=erasure.erase_account),
    "erased by an operator": partial(
        is_erased, by=lambda user: interventions.erase(user.linked_identities.get())
    ),
    "user deleted by the site": partial(is_erased, by=User.delete),
    "revoked by an operator": actors.operator_revokes,
    "re-fetch": actors.refetches,
    "refresh": actors.refreshes,
    "upkeep": actors.tends,
    "revoked": partial(happens, what="revoke"),
    "revoked twice": partial(happens, what="revoke", times=2),
    "revoked at the second": partial(happens, what="revoke", alias="second"),
    "granted and revoked, reversed": partial(happens, what="grant revoke"),
    "deletion": partial(happens, what="delete"),
    "deletion twice": partial(happens, what="delete", times=2),
    "deletion at the second": partial(happens, what="delete", alias="second"),
    "claim revoked": partial(happens, what="revoke_claim"),
    "claim issued": partial(happens, what="issue_claim"),
    "claim revoked and issued, reversed": partial(
        happens, what="revoke_claim issue_claim"
    ),
    "rejected": partial(happens, what="reject"),
    "rejected and verified, reversed": partial(happens, what="reject verify"),
}
#: By how many minutes the service's clock differs from the site's.
CLOCKS = {"clock behind": -4, "clock ahead": 4}

#: What there was before | who acts, in any order | how. ``one dies``: a crash at each step.
#: ``kyc``: the level changes, so the calls that read it are steps. ``handler``: the site has one
#: for revocations. ``replay``: half a year later everything is delivered again. ``long``: not in
#: the leg.
TABLE = """
nobody | sign-up + revoked twice | one dies, long
nobody | sign-up + revoked | one dies, clock behind
nobody | sign-up + revoked | one dies, clock ahead
nobody | sign-up + granted and revoked, reversed | one dies, long
nobody | sign-up + another sign-up + revoked | long
nobody | sign-up + deletion twice | one dies, long
nobody | sign-up + claim revoked | one dies
nobody | sign-up + claim revoked | one dies, clock ahead, long
nobody | sign-up + rejected | one dies, kyc
nobody | sign-up + another sign-up | one dies, long
nobody | sign-up + another sign-up + claim revoked | long
one address | sign-up + Bob's sign-up | one dies, long
known | sign-in + deletion + upkeep | one dies, long
known | renewal + revoked | one dies
known | renewal + revoked | one dies, clock behind, long
known | renewal + revoked + re-fetch | one dies, long
known | sign-in + claim revoked and issued, reversed | one dies, long
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
known | re-fetch + another re-fetch + claim revoked | one dies, long
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, long
known for a day | sign-in + re-fetch + rejected | kyc, long
known for hours | refresh + another refresh + revoked | one dies, long
known for hours | refresh + another refresh | one dies
known for hours | refresh + renewal | one dies
known for hours | refresh + another refresh + renewal | long
known, with password | disconnected + revoked + re-fetch | one dies, long
known, with password | disconnected + claim revoked + sign-in | long
older account | code + revoked twice | one dies, long
older account | code + link | one dies, long
older account | code + sign-up + revoked | long
known | code + revoked | one dies
known, with password | code + sign-in + revoked | long
known twice | revoked at the second + sign-in | one dies
known twice | disconnected + sign-in at the second | one dies
known twice | deletion at the second + sign-in | one dies
known twice | revoked + revoked at the second | one dies
known twice | erased by the person + deletion at the second + sign-in | long
known | revoked + sign-in | one dies, replay
known | deletion + sign-up | one dies, replay
known | revoked by an operator + sign-in | one dies
known | revoked by an operator + revoked + re-fetch | one dies, long
unapplied revocation | upkeep + sign-in | one dies, long
unapplied claim.revoked | upkeep + claim issued + sign-in | long
known | revoked twice + upkeep | one dies, handler
unapplied revocation | upkeep + another upkeep | one dies, handler, long
unapplied revocation | upkeep + sign-in + revoked | long
"""


class Scenario(NamedTuple):
    """One row of the table."""

    before: str
    actors: list[str]
    how: list[str]

    @classmethod
    def parse(cls, row: str) -> "Scenario":
        before, acting, how = row.split(" | ")
        return cls(before, acting.split(" + "), how.split(", "))

    def explore(self, *, seconds: float, until: str = "") -> Found:
        """Follow all orders, in a database that has nothing but its tables.

        ``until``: the invariant with whose first violation the search ends.
        """
        run = Run({name: ACTORS[name.removeprefix("another ")] for name in self.actors})
        run.quiet = {"profile", "kyc"}.difference(self.how)
        run.service.skew = MINUTE * sum(CLOCKS.get(how, 0) for how in self.how)
        endings = [invariants.all_is_delivered_again, invariants.upkeep_goes_on]
        if "replay" in self.how:
            endings.append(invariants.all_is_replayed)
        if "handler" in self.how:
            note = partial(_handled, run)
            handlers.on_event("consent.revoked", name="the site's")(note)
        empty = Saved(run)
        with controlled(run):
            BEFORE[self.before](run)
            run.clock.to_next_minute()
            explorer = Explorer(
                run,
                endings=endings,
                judge=invariants.hours_later,
                deaths=self.how.count("one dies"),
            )
            found = explorer.explore(seconds=seconds, until=until)
        empty.restore(run)
        handlers.forget("the site's")
        return found


def _handled(run: Run, event: WebhookEvent) -> None:
    run.facts["handled"].append((event.pk, event.subject))


SCENARIOS: dict[str, Scenario] = {
    row: Scenario.parse(row) for row in TABLE.strip().splitlines()
}
