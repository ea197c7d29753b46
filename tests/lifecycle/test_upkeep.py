"""What is due is handed out once, worked on once, and comes back if its worker dies."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import ServiceUnavailable
from django_identity.lifecycle.upkeep import due_rows, jobs, key_sets
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import Consent, LinkedIdentity, TokenGrant
from django_identity.service import budget
from tests import crowd
from tests.hostile import HostileService, html, http
from tests.lifecycle.conftest import Published
from tests.records import LONG_AGO, make_claim, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LONG_DUE = timedelta(hours=1)


def due(number: int = 0, *, since: timedelta = LONG_DUE, **fields: Any) -> LinkedIdentity:
    """A linked identity whose re-fetch is due, with a live token."""
    held = {"refetch_due_at": timezone.now() - since, **fields}
    identity = make_identity(make_user(f"user-{number}"), subject=f"subject-{number}", **held)
    if identity.application == "default":
        make_grant(identity)
    return identity


def row(identity: LinkedIdentity) -> LinkedIdentity:
    return LinkedIdentity.objects.get(pk=identity.pk)


def lease_runs_out() -> None:
    LinkedIdentity.objects.update(refetch_taken_until=timezone.now() - timedelta(seconds=1))


def taken(**options: Any) -> list[list[int]]:
    return list(due_rows.take(conf.application(), **options))


def test_what_is_due_is_taken_once(service: HostileService) -> None:
    """The longest due comes first; what is taken is not taken again; what is not due never."""
    due_ids = [due(n, since=timedelta(minutes=n + 1)).pk for n in range(5)]
    due(7, since=-timedelta(hours=1))
    due(8, refetch_due_at=None)
    due(9, application="gone")
    assert taken(page=2) == [due_ids[:2:-1], due_ids[2:0:-1], due_ids[:1]]
    assert taken() == []


def test_rows_of_one_moment_are_all_taken(service: HostileService) -> None:
    """Paging stands on due date and key together, so that equal dates lose no row."""
    moment = timezone.now()
    ids = [due(n, refetch_due_at=moment).pk for n in range(7)]
    assert [pk for page in taken(page=2) for pk in page] == ids


def test_taking_moves_no_due_date(service: HostileService) -> None:
    """A row stays due until its re-fetch has ended."""
    identity = due()
    taken()
    assert row(identity).refetch_due_at == identity.refetch_due_at


def test_several_sweeps_at_once_hand_out_each_row_once(service: HostileService) -> None:
    """Four processes of two sweeps each: every due row is handed out by exactly one."""
    ids = sorted(due(n).pk for n in range(60))
    target = "tests.lifecycle.crowd_calls:take"
    sweeps = crowd.outcomes(*(crowd.start(target, threads=2) for _ in range(4)))
    assert sorted(pk for sweep in sweeps for pk in sweep) == ids


def test_what_is_in_hand_is_bounded(service: HostileService) -> None:
    """However much is due: no more waits in queues than workers can do before it comes back."""
    for n in range(6):
        due(n)
    assert [len(page) for page in taken(page=2, in_hand=4)] == [2, 2]
    assert taken(page=2, in_hand=4) == []
    assert [len(page) for page in taken(page=2, in_hand=5)] == [1]


def test_a_dead_workers_row_comes_back(service: HostileService) -> None:
    """When the lease of a worker that died has run out, the next sweep hands its row out."""
    identity = due()
    assert taken() == [[identity.pk]]
    assert due_rows.start(row(identity))
    assert taken() == []
    lease_runs_out()
    assert taken() == [[identity.pk]]


def test_a_row_that_kills_its_workers_is_set_aside(service: HostileService) -> None:
    """Attempts are counted before the work: after three deaths it waits as after a failure."""
    identity = due()
    for _ in range(due_rows.MOST_LOST_WORKERS):
        assert taken() == [[identity.pk]]
        assert due_rows.start(row(identity))
        lease_runs_out()
    assert taken() == []
    aside = row(identity)
    assert (aside.last_error, aside.refetch_failures) == ("worker_lost", 3)
    assert aside.refetch_due_at is not None
    assert aside.refetch_due_at > timezone.now() + timedelta(seconds=55)


def test_a_late_look_at_lost_workers_sets_nothing_aside(service: HostileService) -> None:
    """Somebody has done the row since: it is neither put off nor said to have lost its workers."""
    identity = due(refetch_started=True, refetch_failures=due_rows.MOST_LOST_WORKERS)
    lease_runs_out()
    late = row(identity)
    refetch_due_at = timezone.now() + timedelta(hours=18)
    LinkedIdentity.objects.update(
        refetch_due_at=refetch_due_at, refetch_taken_until=None, refetch_started=False
    )
    assert not due_rows.start(late)
    assert (row(identity).refetch_due_at, row(identity).last_error) == (refetch_due_at, "")


def test_two_workers_with_one_chunk_share_it(service: HostileService) -> None:
    """A task that is delivered twice does no identity twice."""
    rows = [row(due(n)) for n in range(2)]
    taken()
    mine, theirs = ([row(identity) for identity in rows] for _ in range(2))
    assert due_rows.start(mine[0])
    assert not due_rows.start(theirs[0])
    assert due_rows.start(theirs[1])
    assert not due_rows.start(mine[1])


def test_a_late_delivery_leaves_a_started_row_alone(service: HostileService) -> None:
    """Whoever reads the row while another one works on it does not begin."""
    identity = due()
    taken()
    assert due_rows.start(row(identity))
    assert jobs.refetch_chunk([identity.pk]) == {}
    assert service.requests == []


def test_a_chunk_is_worked_off(service: HostileService) -> None:
    """Each identity of it that is still due is re-fetched; a second delivery does nothing."""
    service.subject = "subject-1"
    identities = [due(1)]
    ids = [identity.pk for identity in identities]
    taken()
    assert jobs.refetch_chunk(ids) == {Refetched.STORED: 1}
    assert jobs.refetch_chunk(ids) == {}
    assert jobs.refetch_one(ids[0]) is None
    done = row(identities[0])
    assert (done.refetch_failures, done.refetch_started, done.refetch_taken_until) == (
        0,
        False,
        None,
    )
    assert service.calls("claims") == 1


def test_ids_that_are_gone_do_no_harm(service: HostileService) -> None:
    """A task for an identity that was unlinked or erased meanwhile ends quietly."""
    assert jobs.refetch_chunk([1, 2, 3]) == {}
    assert jobs.refetch_one(1) is None


def test_six_queries_an_identity(service: HostileService) -> None:
    """Taking, reading and re-fetching with a refresh: at most six queries for each identity."""
    service.subject = "subject-1"
    identity = due(1)
    jobs.refetch_chunk([identity.pk])
    past = timezone.now() - timedelta(minutes=1)
    LinkedIdentity.objects.update(refetch_due_at=past)
    TokenGrant.objects.update(access_expires_at=past)
    time.sleep(1.1)  # the next credential ends in a later second, so that claims are written, too
    with CaptureQueriesContext(connection) as captured:
        assert jobs.refetch_chunk([identity.pk]) == {Refetched.STORED: 1}
    queries = [q["sql"] for q in captured if not q["sql"].startswith(("BEGIN", "COMMIT"))]
    # The first one reads the whole chunk, the last one counts it for the overview.
    assert any("UPDATE" in query and "storedclaim" in query for query in queries)
    assert len(queries[1:-1]) <= 6, "\n".join(queries)


def many(*applications: str) -> None:
    """Identities of each application, of which every tenth is due."""
    users = User.objects.bulk_create(User(username=f"user-{n}") for n in range(300))
    now = timezone.now()
    LinkedIdentity.objects.bulk_create(
        LinkedIdentity(
            user=user,
            application=application,
            environment="test",
            subject=user.username,
            subject_digest=f"{application} {user.username}",
            consent=Consent.GRANTED,
            consent_changed_at=LONG_AGO,
            refetch_due_at=now + (LONG_DUE if number % 10 else -LONG_DUE),
        )
        for application in applications
        for number, user in enumerate(users)
    )


def test_due_rows_are_found_by_an_index(service: HostileService) -> None:
    """The sweep's query and the search for keys in use read indexes, not the table."""
    # With one other, an index without the application would do as well.
    many("default", *(f"other-{number}" for number in range(4)))
    if connection.vendor == "postgresql":
        # A small table is read as a whole, whatever indexes it has.
        with connection.cursor() as cursor:
            cursor.execute("SET enable_seqscan = off")
            cursor.execute("ANALYZE django_identity_linkedidentity")
    first = timezone.now() - timedelta(days=1)
    rows = due_rows.due(conf.application(), now=timezone.now())
    assert "identity_refetch_due" in rows.filter(refetch_due_at__gte=first)[:500].explain()
    kids = LinkedIdentity.objects.filter(
        application="default", environment="test", credential_kid__gt="k"
    )
    plan = kids.order_by("credential_kid").values_list("credential_kid")[:1].explain()
    assert "identity_credential_kid" in plan


def test_a_service_that_is_away_costs_no_turn(service: HostileService) -> None:
    """Nobody's failures are counted for an outage, and all that was due is due when it is over."""
    identities = [due(n) for n in range(12)]
    ids = [identity.pk for identity in identities]
    service.answers["claims"] = html("500 Oops")
    taken()
    tally = jobs.refetch_chunk(ids)
    assert tally[Refetched.NOT_NOW] == 1
    assert tally[Refetched.FAILED] == 4
    assert service.calls("claims") == 5
    assert LinkedIdentity.objects.filter(refetch_failures=0, refetch_taken_until=None).count() == 8
    assert not budget.may_try(conf.application())
    jobs.refetch_chunk(ids)
    assert service.calls("claims") == 5
    in_a_minute = timezone.now() + timedelta(minutes=1)
    assert due_rows.due(conf.application(), now=in_a_minute).count() == 8


def test_one_row_tries_whether_the_service_is_back(
    service: HostileService, published: Published
) -> None:
    """While the service is away nothing is handed out; when a try is due it is a single row."""
    for n in range(4):
        due(n)
    for _ in range(5):
        budget.note(conf.application(), "claims", ServiceUnavailable())
    assert jobs.sweep() == 0
    threading.Event().wait(1.01)
    assert jobs.sweep() == 1
    budget.note(conf.application(), "claims", None)
    assert jobs.sweep() == 3
    assert [len(chunk) for (chunk,) in published()] == [1, 3]


def test_429_leaves_everything_due(service: HostileService) -> None:
    """A pause that the service asks for is nobody's failure."""
    ids = [due(n).pk for n in range(3)]
    service.answers["claims"] = http(b"", status="429 Slow", headers="Retry-After: 30\r\n")
    assert jobs.refetch_chunk(ids) == {Refetched.NOT_NOW: 1}
    assert jobs.refetch_chunk(ids) == {Refetched.NOT_NOW: 1}
    assert service.calls("claims") == 1
    assert LinkedIdentity.objects.filter(refetch_failures=0, refetch_taken_until=None).count() == 3


def test_one_identitys_trouble_does_not_stop_the_others(service: HostileService) -> None:
    """A row that makes us stumble is put off; the rest of its chunk is worked off."""
    service.subject = "subject-1"
    broken, other = due(1), due(2)
    LinkedIdentity.objects.filter(pk=broken.pk).update(subject_digest="no digest")
    assert jobs.refetch_chunk([broken.pk, other.pk]) == {Refetched.FAILED: 2}
    assert row(broken).last_error == "unexpected_error"
    assert row(other).last_error == "subject_mismatch"


def test_a_person_who_must_come_again_is_due_no_more(service: HostileService) -> None:
    """A dead grant is found once; after that nothing is handed out for it."""
    identity = due()
    TokenGrant.objects.update(needs_reauthorization=True, access_token="", refresh_token="")
    taken()
    assert jobs.refetch_chunk([identity.pk]) == {Refetched.REAUTHORIZATION_NEEDED: 1}
    assert row(identity).refetch_due_at is None
    assert service.calls("claims") == 0


def test_a_revocation_before_the_work_stops_it(service: HostileService) -> None:
    """What was handed out before the consent was taken back makes no call after."""
    identity = due()
    taken()
    LinkedIdentity.objects.update(consent=Consent.REVOKED)
    assert jobs.refetch_chunk([identity.pk]) == {Refetched.NOTHING_TO_FETCH: 1}
    assert service.calls("claims") == 0


def test_a_key_that_vanished_makes_its_credentials_due(service: HostileService) -> None:
    """A stored credential whose key is published no more is re-fetched, not distrusted; those
    under a key that stands, and those that wait after a failure, keep their date.
    """
    later = -timedelta(hours=9)
    gone = due(1, since=later, credential_kid="k0")
    make_claim(gone)
    kept = due(2, since=later, credential_kid="k1")
    failed = due(3, since=later, credential_kid="k0", refetch_failures=2)
    assert due_rows.mark_vanished_keys(conf.application()) == 1
    now = timezone.now()
    assert [row(one).refetch_due_at <= now for one in (gone, kept, failed)] == [
        True,
        False,
        False,
    ]  # fmt: skip
    assert gone.claims.get().valid_until is not None
    assert due_rows.mark_vanished_keys(conf.application()) == 0


def test_no_key_set_makes_nothing_due(service: HostileService) -> None:
    """Keys that cannot be had say nothing about the credentials."""
    due(1, since=-LONG_DUE, credential_kid="k0")
    service.answers["jwks"] = html("500 Oops")
    cache.clear()
    key_sets.forget()
    assert due_rows.mark_vanished_keys(conf.application()) == 0


def test_grants_that_run_out_are_kept_alive(service: HostileService) -> None:
    """Those under five days before their end and unused for a day are refreshed, once."""
    now = timezone.now()
    for n, days in enumerate((4, 20, -1)):
        identity = due(n, since=-LONG_DUE)
        TokenGrant.objects.filter(identity=identity).update(
            refresh_expires_at=now + timedelta(days=days),
            access_expires_at=now - timedelta(days=3),
        )
    assert jobs.keep_alive() == 1
    assert jobs.keep_alive() == 0
    assert service.calls("token") == 1


def test_keep_alive_survives_a_dead_grant(service: HostileService) -> None:
    """One refusal does not keep the others from being refreshed."""
    now = timezone.now()
    for n in range(2):
        identity = due(n, since=-LONG_DUE)
        TokenGrant.objects.filter(identity=identity).update(
            refresh_expires_at=now + timedelta(days=n + 1),
            access_expires_at=now - timedelta(days=3),
        )
    # Both were given the same token, so the second one is presented twice.
    assert jobs.keep_alive() == 1
    assert TokenGrant.objects.filter(needs_reauthorization=True).count() == 1


def test_a_sweep_publishes_chunks_of_ids(service: HostileService, published: Published) -> None:
    """What goes to the broker is ids, in chunks, and nothing about a person."""
    ids = [due(n, since=timedelta(minutes=99 - n)).pk for n in range(jobs.CHUNK + 3)]
    assert jobs.sweep() == len(ids)
    assert published() == [[ids[: jobs.CHUNK]], [ids[jobs.CHUNK :]]]
    assert jobs.sweep() == 0


def test_a_dead_broker_loses_nothing(service: HostileService, dead_broker: None) -> None:
    """What could not be published is let go, for the next sweep."""
    for n in range(3):
        due(n)
    assert jobs.sweep() == 0
    assert LinkedIdentity.objects.filter(refetch_taken_until=None).count() == 3


def test_upkeep_without_a_worker(service: HostileService) -> None:
    """``refetch_due`` does here and now what sweep and tasks do, and ends."""
    service.subject = "subject-1"
    due(1)
    due(2)
    assert Counter(jobs.refetch_due()) == {Refetched.STORED: 1, Refetched.FAILED: 1}
    assert jobs.count_due() == 0


def test_a_stop_lets_the_rest_go(service: HostileService) -> None:
    """What was taken and not worked on is free at once."""
    service.subject = "subject-1"
    for n in (1, 2, 3):
        due(n, since=timedelta(minutes=9 - n))
    with closing(jobs.refetch_due()) as outcomes:
        assert next(outcomes) is Refetched.STORED
    assert [len(page) for page in taken()] == [2]


def test_these_are_refetched_due_or_not(service: HostileService) -> None:
    """An operator may ask for an identity by its id at any time."""
    service.subject = "subject-1"
    identity = due(1, since=-LONG_DUE)
    assert list(jobs.refetch_these([identity.pk])) == [Refetched.STORED]


def test_the_other_environment_is_never_touched(service: HostileService) -> None:
    """A live identity is no business of a site that is set up for tests."""
    due(1, environment="live")
    due(2, application="another")
    assert taken() == []
    assert jobs.count_due() == 0
    assert list(jobs.refetch_due()) == []


def test_a_disabled_account_is_left_alone(service: HostileService) -> None:
    """Nothing is asked about it; once it is enabled again, upkeep comes back within a day."""
    service.subject = "subject-1"
    identity = due(1)
    User.objects.update(is_active=False)
    TokenGrant.objects.update(refresh_expires_at=timezone.now() + timedelta(days=2))
    TokenGrant.objects.update(access_expires_at=timezone.now() - timedelta(days=2))
    assert list(jobs.refetch_due()) == []
    assert (jobs.keep_alive(), service.requests) == (0, [])
    assert not TokenGrant.objects.get().needs_reauthorization
    assert row(identity).refetch_taken_until is None
    User.objects.update(is_active=True)
    in_a_day = timezone.now() + timedelta(days=1)
    LinkedIdentity.objects.filter(refetch_due_at__lte=in_a_day).update(refetch_due_at=LONG_AGO)
    assert list(jobs.refetch_due()) == [Refetched.STORED]


def test_a_row_that_a_wrong_clock_took_comes_back(service: HostileService) -> None:
    """Nobody can have taken it for an hour."""
    service.subject = "subject-1"
    identity = due(1)
    in_an_hour = timezone.now() + timedelta(hours=1)
    LinkedIdentity.objects.update(refetch_taken_until=in_an_hour, refetch_started=True)
    assert taken() == [[identity.pk]]
