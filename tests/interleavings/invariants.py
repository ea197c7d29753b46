"""What holds at every end, each in one function, which yields what is wrong in words.

The ends: all deliveries have come again; or upkeep alone went on. ``docs/security.md`` has what is
accepted.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from django.contrib.auth.models import User

from django_identity import conf, gates
from django_identity.backends import IdentityBackend
from django_identity.lifecycle import upkeep
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    TokenGrant,
    WebhookEvent,
)
from tests.interleavings.actors import Arrived, deliver, is_stored
from tests.interleavings.explorer import Run
from tests.interleavings.world import MINUTE

HALF_A_YEAR = 181 * 24 * 60 * MINUTE
ADULT = gates.Gate("age_over_18")
LEVEL = gates.Gate(kyc_level="level_2")


def consent_is_given(run: Run) -> Iterator[str]:
    """A consent is held only if it is granted in truth, by an arrival since its last end."""
    for identity in LinkedIdentity.objects.filter(consent=Consent.GRANTED):
        truth = run.service.consent(identity.application, identity.subject)
        if truth.state != "granted":
            yield f"A consent is held that is {truth.state}."
        if not _arrivals(run, identity, since=_ended_at(run, identity)):
            yield "A consent is held, and nobody has arrived since it ended."
        given = {*truth.scopes, *conf.application(identity.application).connect_scopes}
        if identity.linked_via == LinkedVia.OAUTH and not {*identity.scopes} <= given:
            yield "More scopes are held than were granted."


def sign_ins_confirm(run: Run) -> Iterator[str]:
    """A link that a full sign-in made or confirmed is no link by code."""
    by_code = LinkedIdentity.objects.filter(
        consent=Consent.GRANTED, linked_via=LinkedVia.CONNECT
    )
    for identity in by_code:
        since = _arrivals(run, identity, since=_ended_at(run, identity))
        if not all(arrived.by_code for arrived in since):
            yield "A sign-in has confirmed the link, and it is one by code."


def _ended_at(run: Run, place: LinkedIdentity | Arrived) -> str:
    """When the consent ended last, at the service or by an operator here."""
    truth = run.service.consent(place.application, place.subject)
    return max([truth.ended_at, *run.facts["revoked here"]])


def _arrivals(run: Run, identity: LinkedIdentity, *, since: str) -> list[Arrived]:
    """The sign-ins and codes of the identity that were allowed after that."""
    return [
        each
        for each in run.facts["arrived"]
        if (each.application, each.subject) == (identity.application, identity.subject)
        and each.approved_at > since
    ]


def tokens_go_with_the_consent(run: Run) -> Iterator[str]:
    """No tokens are held without a consent."""
    if TokenGrant.objects.exclude(identity__consent=Consent.GRANTED).exists():
        yield "Tokens are held without a consent."


def sessions_end(run: Run) -> Iterator[str]:
    """No session lives that began with a consent that ended, or before all sessions were ended."""
    for arrived in run.facts["arrived"]:
        user = IdentityBackend().get_user(arrived.user_id)
        if user is None or arrived.mark != user.identity_stamp:
            continue
        if arrived.approved_at < _ended_at(run, arrived):
            yield "A session lives on after the consent of its sign-in ended."
        if arrived.mark in run.facts["ended"]:
            yield "A session lives on after all were ended."


def gates_tell_the_truth(run: Run) -> Iterator[str]:
    """No gate is open on what is revoked or rejected in truth."""
    for user in User.objects.all():
        seen = IdentityBackend().get_user(user.pk)
        if seen is None:
            continue
        if run.service.claim_is_revoked and gates.closed_to(ADULT, seen) is None:
            yield "A gate is open on a revoked claim."
        if run.service.status != "verified" and gates.closed_to(LEVEL, seen) is None:
            yield "A gate is open on a rejected level."


def what_is_wrong_is_due(run: Run) -> Iterator[str]:
    """A closed gate that would be open in truth, or a wrong level, is at least re-fetched soon."""
    for identity in LinkedIdentity.objects.filter(
        consent=Consent.GRANTED,
        linked_via=LinkedVia.OAUTH,
        grant__needs_reauthorization=False,
    ):
        truth = run.service.consent(identity.application, identity.subject)
        if truth.state != "granted" or identity.is_due:
            continue
        if (identity.kyc_level, identity.kyc_status) != (
            run.service.level,
            run.service.status,
        ):
            yield "The level is not the service's, and no re-fetch is due."
        proven = identity.claims.filter(revoked_at=None).exclude(valid_until=None)
        if not run.service.claim_is_revoked and not proven.exists():
            yield "A claim counts in truth and not here, and no re-fetch is due."


def tokens_are_sent_once(run: Run) -> Iterator[str]:
    """No refresh token is sent twice, but after a crash between sending and storing."""
    if not run.died and max(Counter(run.service.sent).values(), default=0) > 1:
        yield "A refresh token was sent twice."


def deletions_erase(run: Run) -> Iterator[str]:
    """After a deletion nothing of the subject is left, but what a later arrival brought.

    After an erasure by the person, an operator or the site the account is gone, and its identities.
    """
    for identity in LinkedIdentity.objects.all():
        truth = run.service.consent(identity.application, identity.subject)
        if truth.deleted_at and not _arrivals(run, identity, since=truth.deleted_at):
            yield "The service asked for a deletion, and the identity is still there."
        for erased_at in run.facts["erased here"]:
            if _arrivals(run, identity, since=erased_at):
                continue
            if not sign_in_had_begun_before_the_erasure(run, identity):
                yield "An account was erased here, and the identity is still there."
    for _erased_at in run.facts["erased here"]:
        if User.objects.filter(pk=run.facts["user"], is_active=True).exists():
            yield "An account was erased here, and is still in use."


def sign_in_had_begun_before_the_erasure(run: Run, identity: LinkedIdentity) -> bool:
    """Accepted, and said in ``docs/security.md``: it comes back and makes a new account."""
    arrived = _arrivals(run, identity, since="")
    return any(each.user_id != run.facts["user"] for each in arrived)


def nothing_is_kept_of_strangers(run: Run) -> Iterator[str]:
    """Of a subject who is not linked, no event keeps the subject or the payload."""
    linked = LinkedIdentity.objects.values("subject_digest")
    if (
        WebhookEvent.objects.exclude(subject="")
        .exclude(subject_digest__in=linked)
        .exists()
    ):
        yield "An event keeps the subject of somebody who is not linked."


def accounts_have_a_way_in(run: Run) -> Iterator[str]:
    """No account is left that an identity made, and that nobody can get into."""
    for user in User.objects.filter(is_active=True):
        if user.has_usable_password():
            continue
        if not LinkedIdentity.objects.filter(
            user=user, linked_via=LinkedVia.OAUTH
        ).exists():
            yield "An account has no way in."


def all_is_settled(run: Run) -> Iterator[str]:
    """Every event has an outcome, and every erasure is done."""
    for event in WebhookEvent.objects.filter(outcome=""):
        yield f"{event.event_type} has no outcome."
    if ErasureReceipt.objects.filter(erased_at=None).exists():
        yield "An erasure is pending."


def handlers_run_once(run: Run) -> Iterator[str]:
    """No handler succeeds twice for an event, and none gets one without its content."""
    handled = run.facts["handled"]
    if len({event for event, _subject in handled}) < len(handled):
        yield "A handler ran twice for an event."
    if not all(subject for _event, subject in handled):
        yield "A handler got an event without its subject."


def grants_live(run: Run) -> Iterator[str]:
    """No grant is marked as dead while the service would take its tokens."""
    dead = TokenGrant.objects.filter(needs_reauthorization=True)
    for grant in dead.select_related("identity"):
        truth = run.service.consent(grant.identity.application, grant.identity.subject)
        if truth.state == "granted":
            yield "A grant is dead, and its consent is granted in truth."


def refusals_leave_nothing(run: Run) -> Iterator[str]:
    """A refused sign-up leaves neither link nor account; only what died may leave an empty link."""
    never_granted = LinkedIdentity.objects.filter(
        consent=Consent.REVOKED, revoked_at=None
    )
    if not run.died and never_granted.exists():
        yield "A refused sign-up has left an empty link."


def nobody_fails(run: Run) -> Iterator[str]:
    """No process ends with an error that is none of the package's own."""
    for process in run.processes:
        if process.fault:
            yield f"{process.name} {process.outcome}."


Invariant = Callable[[Run], Iterator[str]]
INVARIANTS: tuple[Invariant, ...] = (
    consent_is_given,
    sign_ins_confirm,
    tokens_go_with_the_consent,
    sessions_end,
    gates_tell_the_truth,
    what_is_wrong_is_due,
    tokens_are_sent_once,
    deletions_erase,
    nothing_is_kept_of_strangers,
    accounts_have_a_way_in,
    all_is_settled,
    handlers_run_once,
    grants_live,
    nobody_fails,
)
#: These hold already when the last delivery is answered, before any upkeep.
AT_ONCE = (consent_is_given, sessions_end, gates_tell_the_truth, refusals_leave_nothing)


# How it goes on after the last step of all


def all_is_delivered_again(run: Run) -> Iterator[str]:
    """every event is delivered again"""
    for told in list(run.service.events):
        deliver(told)
    yield from _wrongs(run, AT_ONCE)


def upkeep_goes_on(run: Run) -> Iterator[str]:
    """upkeep alone goes on"""
    for told in list(run.service.events):
        if not is_stored(told):
            # The service got no answer, so it delivers again, however long that takes.
            deliver(told)
    yield from ()


def all_is_replayed(run: Run) -> Iterator[str]:
    """half a year later somebody delivers every event again"""
    run.clock.seconds += HALF_A_YEAR
    upkeep.purge()
    for told in list(run.service.events):
        deliver(told)
    yield from _wrongs(run, AT_ONCE)


def hours_later(run: Run) -> Iterator[str]:
    """What is wrong after upkeep has run."""
    run.clock.to_next_minute()
    for minutes in (11, 120):
        run.clock.seconds += minutes * MINUTE
        upkeep.tend()
    yield from _wrongs(run, INVARIANTS)


def _wrongs(run: Run, invariants: tuple[Invariant, ...]) -> Iterator[str]:
    for invariant in invariants:
        for wrong in invariant(run):
            yield f"{invariant.__name__}: {wrong}"
