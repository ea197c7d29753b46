"""What holds at every end. Each function has its sentence, and returns what breaks it, if anything.

The ends: all deliveries have come again; or upkeep alone went on. ``docs/security.md`` has what is
accepted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast

from django_identity import gates
from django_identity.backends import IdentityBackend
from django_identity.lifecycle.minute import upkeep
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.interleavings.actors import FIRST, deliver
from tests.interleavings.world import Arrived, World

ADULT = gates.Gate("age_over_18")
LEVEL = gates.Gate(kyc_level="level_2")


def consents_are_granted(world: World) -> object:
    """A consent is held only if it is granted in truth, by an arrival since its last end."""
    return [
        identity
        for identity in _granted()
        if not world.truth.is_granted
        or not _arrivals(world, identity, since=_ended_at(world))
    ]


def sign_ins_confirm(world: World) -> object:
    """A link that a full sign-in to its account made or confirmed is no link by code."""
    return [
        identity
        for identity in _granted(linked_via=LinkedVia.CONNECT)
        for arrived in _arrivals(world, identity, since=_ended_at(world))
        if not arrived.by_code and arrived.user_id == identity.user_id
    ]


def tokens_go_with_the_consent(world: World) -> object:
    """No tokens are held without a consent."""
    return TokenGrant.objects.exclude(identity__consent=Consent.GRANTED)


def sessions_end(world: World) -> object:
    """No session lives that began with a consent that ended, or before all sessions were ended."""
    living = [user.identity_stamp for user in _users()]
    return [
        arrived
        for arrived in world.arrived
        if arrived.mark in living
        and (arrived.mark in world.ended or arrived.approved_at < _ended_at(world))
    ]


def no_gate_is_open_on_what_ended(world: World) -> object:
    """No gate is open on a claim that is revoked, or a level that is rejected, in truth."""
    is_rejected = world.kyc["status"] == "rejected"
    return (world.claim_is_revoked and _let_in(ADULT)) or (
        is_rejected and _let_in(LEVEL)
    )


def what_differs_is_due(world: World) -> object:
    """If the level is not the service's, or a claim counts in truth alone, a re-fetch is due."""
    told = (world.kyc["kyc_level"], world.kyc["status"])
    return [
        identity
        for identity in _not_due(world)
        if (identity.kyc_level, identity.kyc_status) != told
        or not (world.claim_is_revoked or _proven(identity))
    ]


def nothing_is_sent_twice(world: World) -> object:
    """No code or token is sent twice, but after a crash between sending and storing."""
    sent = world.sent
    return not world.died and len(set(sent)) < len(sent)


def deletions_erase(world: World) -> object:
    """After a deletion no identity of the subject is left, but what a later arrival brought."""
    for identity in LinkedIdentity.objects.all():
        deleted_at = world.truth.deleted_at
        if deleted_at and not _arrivals(world, identity, since=deleted_at):
            return identity
    return None


def who_is_erased_is_gone(world: World) -> object:
    """After an erasure by the person, an operator or the site, account and identity are gone.

    But for what a later arrival brought. Accepted, and said in ``docs/security.md``: a sign-in that
    had begun before comes back, and makes a new account.
    """
    erased_at = world.here["erased"]
    if not erased_at:
        return None
    return [*User.objects.filter(pk=FIRST, is_active=True)] + [
        identity
        for identity in LinkedIdentity.objects.all()
        if not _arrivals(world, identity, since=erased_at)
        and all(each.user_id == FIRST for each in _arrivals(world, identity, since=""))
    ]


def nothing_is_kept_of_strangers(world: World) -> object:
    """Of a subject who is not linked, no event keeps the subject or the payload."""
    linked = LinkedIdentity.objects.values("subject_digest")
    return WebhookEvent.objects.exclude(subject="").exclude(subject_digest__in=linked)


def accounts_have_a_way_in(world: World) -> object:
    """No account is left that an identity made, and that nobody can get into."""
    locked_out = User.objects.filter(is_active=True, password__startswith="!")
    return locked_out.exclude(linked_identity__linked_via=LinkedVia.OAUTH)


def all_is_done_once(world: World) -> object:
    """Every event has an outcome, every erasure is done, no handler succeeds twice for an event."""
    return [
        *WebhookEvent.objects.filter(outcome=""),
        *ErasureReceipt.objects.filter(erased_at=None),
        *[each for each in world.handled if world.handled.count(each) > 1],
    ]


def grants_live(world: World) -> object:
    """No grant is marked as dead while its consent is granted in truth."""
    dead = LinkedIdentity.objects.filter(grant__needs_reauthorization=True)
    return [identity for identity in dead if world.truth.is_granted]


def refusals_leave_nothing(world: World) -> object:
    """A sign-up that is refused or dies leaves neither link nor account."""
    if any(world.here.values()):
        return None
    never_granted = LinkedIdentity.objects.filter(
        consent=Consent.REVOKED,
        revoked_at=None,
    )
    waiting = ErasureReceipt.objects.exclude(account=None).values("account")
    unlinked = User.objects.filter(
        is_active=True,
        password__startswith="!",
        linked_identity=None,
    )
    # The account of an erasure waits for the site's part.
    unlinked = unlinked.annotate(key=Cast("pk", CharField())).exclude(key__in=waiting)
    return [*never_granted, *unlinked]


def nobody_fails(world: World) -> object:
    """No process ends with an error that is none of the package's own."""
    return world.failed


# What they ask


def _granted(**columns: object) -> QuerySet[LinkedIdentity]:
    return LinkedIdentity.objects.filter(consent=Consent.GRANTED, **columns)


def _ended_at(world: World) -> str:
    """When the consent ended last, at the service or by an operator here."""
    return max(world.truth.ended_at, world.here["revoked"])


def _arrivals(world: World, identity: LinkedIdentity, *, since: str) -> list[Arrived]:
    """The sign-ins and codes of the identity that were allowed after that."""
    return [
        each
        for each in world.arrived
        if each.subject == identity.subject and each.approved_at > since
    ]


def _users() -> list[Any]:
    """The users as a request gets them, whose session by an identity can live."""
    keys = User.objects.values_list("pk", flat=True)
    return [user for user in map(IdentityBackend().get_user, keys) if user is not None]


def _let_in(gate: gates.Gate) -> list[User]:
    return [user for user in _users() if gates.closed_to(gate, user) is None]


def _proven(identity: LinkedIdentity) -> QuerySet[StoredClaim]:
    return identity.claims.exclude(valid_until=None).filter(revoked_at=None)


def _not_due(world: World) -> list[LinkedIdentity]:
    """Of those who can be re-fetched, whose re-fetch is not due."""
    held = _granted(linked_via=LinkedVia.OAUTH, grant__needs_reauthorization=False)
    return [
        identity for identity in held if world.truth.is_granted and not identity.is_due
    ]


Invariant = Callable[[World], object]
#: These hold already when the last delivery is answered, before any upkeep.
AT_ONCE = (
    consents_are_granted,
    sessions_end,
    no_gate_is_open_on_what_ended,
    refusals_leave_nothing,
)
IN_THE_END = (
    *AT_ONCE,
    sign_ins_confirm,
    tokens_go_with_the_consent,
    what_differs_is_due,
    nothing_is_sent_twice,
    deletions_erase,
    who_is_erased_is_gone,
    nothing_is_kept_of_strangers,
    accounts_have_a_way_in,
    all_is_done_once,
    grants_live,
    nobody_fails,
)


# How it goes on after the last step of all. What is yielded does not hold then.


def all_is_delivered_again(world: World) -> Iterator[str]:
    """every event is delivered again"""
    for told in world.told:
        deliver(told)
    yield from _broken(world, AT_ONCE)
    yield from _hours_later(world)


def upkeep_goes_on(world: World) -> Iterator[str]:
    """upkeep alone goes on"""
    for told in world.told:
        if not WebhookEvent.objects.filter(event_type=told.event_type):
            # The service got no answer, so it delivers again, however long that takes.
            deliver(told)
    yield from _hours_later(world)


def all_is_replayed(world: World) -> Iterator[str]:
    """half a year later somebody delivers every event again"""
    world.advance(days=181)
    upkeep.purge()
    yield from all_is_delivered_again(world)


def _hours_later(world: World) -> Iterator[str]:
    for minutes in (11, 120):
        world.advance(minutes=minutes)
        upkeep.tend()
    yield from _broken(world, IN_THE_END)


def _broken(world: World, invariants: Iterable[Invariant]) -> Iterator[str]:
    for invariant in invariants:
        if invariant(world):
            yield str(invariant.__doc__)
