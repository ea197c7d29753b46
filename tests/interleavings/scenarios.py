"""Who acts at once: the table of scenarios."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django_identity import handlers
from django_identity.models import WebhookEvent
from tests.interleavings import actors
from tests.interleavings.actors import happen_reversed, happens, known, signs_in, tends, unapplied
from tests.interleavings.control import controlled
from tests.interleavings.explorer import Explorer, Found
from tests.interleavings.invariants import ENDS
from tests.interleavings.processes import Run
from tests.interleavings.world import MINUTE

Before = Callable[[Run], None]
Actor = Callable[[Run], str]

HOUR = 60
BEFORE: dict[str, Before] = {
    "nobody": actors.nobody,
    "one address": actors.with_one_address,
    "older account": actors.older,
    "known": known,
    "known, with password": partial(known, password=True),
    "known for hours": partial(known, minutes=2 * HOUR),
    "known for a day": partial(known, minutes=25 * HOUR),
    "known twice": actors.known_twice,
    "unapplied revocation": partial(unapplied, what="revoke"),
    "unapplied claim.revoked": partial(unapplied, what="revoke_claim"),
}
#: ``second``: at the second application.
ACTORS: dict[str, Actor] = {
    "sign-up": signs_in,
    "sign-in": signs_in,
    "another sign-up": signs_in,
    "another person's": partial(signs_in, subject="bob"),
    "sign-in at the second": partial(signs_in, alias="second"),
    "renewal": partial(signs_in, inside=True),
    "link": partial(signs_in, inside=True),
    "code": actors.enters_code,
    "disconnected": actors.disconnects,
    "signed out everywhere": actors.signs_out_everywhere,
    "erased by the person": actors.erases_the_account,
    "erased by an operator": actors.operator_erases,
    "user deleted by the site": actors.deletes_the_user,
    "re-fetch": actors.refetches,
    "another re-fetch": actors.refetches,
    "refresh": actors.refreshes,
    "another refresh": actors.refreshes,
    "upkeep": tends,
    "another upkeep": tends,
    "purge and replay": actors.purges_and_replays,
    "revoked": partial(happens, what="revoke"),
    "revoked twice": partial(happens, what="revoke", times=2),
    "revoked at the second": partial(happens, what="revoke", alias="second"),
    "granted and revoked, reversed": partial(happen_reversed, first="grant", second="revoke"),
    "deletion": partial(happens, what="delete"),
    "deletion twice": partial(happens, what="delete", times=2),
    "deletion at the second": partial(happens, what="delete", alias="second"),
    "claim revoked": partial(happens, what="revoke_claim"),
    "claim issued": partial(happens, what="issue_claim"),
    "claim revoked and issued, reversed": partial(
        happen_reversed, first="revoke_claim", second="issue_claim"
    ),
    "rejected": partial(happens, what="reject"),
    "rejected and verified, reversed": partial(happen_reversed, first="reject", second="verify"),
}

#: What there was before | who acts, in any order | how. ``one dies``: a crash at each step.
#: ``behind``, ``ahead``: the service's clock, by four minutes. ``kyc``: the level changes, so the
#: calls that read it are steps. ``handler``: the site has one for revocations. ``acts``: a second
#: passes before what people and the service do, and not at each step. ``long``: not in the leg.
TABLE = """
nobody | sign-up + revoked twice | one dies, long
nobody | sign-up + revoked | one dies, behind
nobody | sign-up + revoked | one dies, ahead
nobody | sign-up + granted and revoked, reversed | one dies, long
nobody | sign-up + another sign-up + revoked | acts, long
nobody | sign-up + deletion twice | one dies, long
nobody | sign-up + claim revoked | one dies
nobody | sign-up + claim revoked | one dies, ahead, long
nobody | sign-up + rejected | one dies, kyc
nobody | sign-up + another sign-up | one dies, long
nobody | sign-up + another sign-up + claim revoked | acts, long
one address | sign-up + another person's | one dies, long
known | sign-in + deletion + upkeep | one dies, acts, long
known | renewal + revoked | one dies
known | renewal + revoked | one dies, behind, long
known | renewal + revoked + re-fetch | one dies, acts, long
known | sign-in + claim revoked and issued, reversed | one dies, long
known | sign-in + rejected and verified, reversed | one dies, kyc, long
known | sign-in + rejected | one dies, kyc, behind, long
known | signed out everywhere + sign-in | one dies
known | erased by the person + sign-in | one dies, long
known | erased by the person + deletion | one dies
known | erased by an operator + deletion | one dies
known | erased by the person + sign-in + deletion | acts, long
known | user deleted by the site + revoked | one dies
known | user deleted by the site + deletion | one dies
known | user deleted by the site + revoked + sign-in | acts, long
known | re-fetch + claim revoked and issued, reversed | one dies
known | re-fetch + another re-fetch + claim revoked | one dies, long
known for a day | re-fetch + rejected and verified, reversed | one dies, kyc, long
known for a day | sign-in + re-fetch + rejected | acts, kyc, long
known for hours | refresh + another refresh + revoked | one dies, long
known for hours | refresh + another refresh | one dies
known for hours | refresh + renewal | one dies
known for hours | refresh + another refresh + renewal | acts, long
known, with password | disconnected + revoked + re-fetch | one dies, long
known, with password | disconnected + claim revoked + sign-in | acts, long
older account | code + revoked twice | one dies, long
older account | code + link | one dies, acts, long
older account | code + sign-up + revoked | acts, long
known | code + revoked | one dies
known, with password | code + sign-in + revoked | acts, long
known twice | revoked at the second + sign-in | one dies
known twice | disconnected + sign-in at the second | one dies
known twice | deletion at the second + sign-in | one dies
known twice | revoked + revoked at the second | one dies
known twice | erased by the person + deletion at the second + sign-in | acts, long
known | revoked + sign-in + purge and replay | acts, long
known | deletion + sign-up + purge and replay | acts, long
unapplied revocation | upkeep + sign-in | one dies, long
unapplied claim.revoked | upkeep + claim issued + sign-in | acts, long
known | revoked twice + upkeep | one dies, handler
unapplied revocation | upkeep + another upkeep | one dies, handler, long
unapplied revocation | upkeep + sign-in + revoked | acts, long
"""


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    before: str
    actors: tuple[str, ...]
    how: frozenset[str]

    @classmethod
    def parse(cls, row: str) -> "Scenario":
        before, acting, how = row.split(" | ")
        return cls(before, tuple(acting.split(" + ")), frozenset(how.split(", ")))

    @property
    def name(self) -> str:
        clock = "".join(f", clock {how}" for how in ("behind", "ahead") if how in self.how)
        return f"{self.before}: {' + '.join(self.actors)}{clock}"

    def explore(self, *, seconds: float, until: str = "") -> Found:
        """Follow all orders, in a database that has nothing but its tables.

        ``until``: the invariant with whose first violation the search ends.
        """
        minutes = {"behind": -4, "ahead": 4}
        run = Run({name: ACTORS[name] for name in self.actors})
        run.every_step_ticks = "acts" not in self.how
        if "kyc" not in self.how:
            run.quiet_calls |= {"kyc"}
        if "handler" in self.how:
            handlers.on_event("consent.revoked", name="the site's")(partial(_handled, run))
        run.service.skew = sum(minutes[how] * MINUTE for how in self.how & minutes.keys())
        with controlled(run):
            BEFORE[self.before](run)
            run.clock.to_next_minute()
            explorer = Explorer(run, judges=ENDS, deaths=int("one dies" in self.how))
            return explorer.explore(seconds=seconds, until=until)


def _handled(run: Run, event: WebhookEvent) -> None:
    run.facts["handled"].append((event.pk, event.subject))


_rows = map(Scenario.parse, TABLE.strip().splitlines())
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _rows}
