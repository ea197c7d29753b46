"""The intake of events, beside the least that a webhook can be.

PostgreSQL only (``DATABASE_URL``). The bare view checks the same signature over the same bytes,
parses the JSON and inserts the same columns with the ORM; nothing else. All views are called
directly, with requests made beforehand, and in turn, each for a batch of events. The events of a
linked subject are of the five types that an identity sees again and again. There is no broker: what
is handed over after the response is not the intake's (README.md says what it costs beside it).

``million_vs_thousand``: the rate with a million stored events, by the rate with a thousand; half of
the subjects are linked. Each table stands in a schema of its own, and the two are measured in turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from itertools import islice

from django.db import connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.test import RequestFactory
from django.test.utils import setup_test_environment
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_identity.models import EventOutcome, WebhookEvent, digest
from django_identity.service.webhooks import signing_secret
from django_identity.views.webhook import webhook
from tests.benchmarks.overview import EVENT, fill
from tests.benchmarks.runner import Result, seconds_of
from tests.deliveries import SECRET, event_body, signed
from tests.servers import storm

BATCH = 10
ROUNDS = 60
EVENTS = BATCH * (ROUNDS + 1)  # and one batch to warm up
MILLION = 1_000_000
THOUSAND = 1_000
TYPES = ("kyc.verified", "claim.issued", "claim.revoked", "consent.granted", "kyc.rejected")
TABLE = WebhookEvent._meta.db_table
View = Callable[[HttpRequest], HttpResponseBase]

_requests = RequestFactory()


def run() -> Result:
    if connection.vendor != "postgresql":
        raise SystemExit("set DATABASE_URL to a PostgreSQL")
    os.environ.pop("CELERY_BROKER_URL", None)
    setup_test_environment()
    name = connection.creation.create_test_db(verbosity=0)
    try:
        storm.people(timezone.now() - timedelta(days=1))
        return _measured()
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def bare_view(request: HttpRequest) -> HttpResponseBase:
    """The least that a webhook can be."""
    body = request.body
    if not signing_secret(
        body, signature=request.headers["X-Webhook-Signature"], secrets=(SECRET,)
    ):
        return JsonResponse({}, status=401)
    event = json.loads(body)
    WebhookEvent.objects.create(
        application="default",
        event_id=event["event_id"],
        event_digest=digest("default", event["event_id"]),
        event_type=event["event_type"],
        occurred_at=parse_datetime(event["timestamp"]),
        received_at=timezone.now(),
        subject=event["data"]["user_id"],
        subject_digest=digest("default", "test", event["data"]["user_id"]),
        payload=event["data"],
        outcome=EventOutcome.APPLIED,
    )
    return JsonResponse({"received": True})


def _measured() -> Result:
    """``bare`` is sent what ``linked`` is sent; who is linked makes no difference to it."""
    taken = seconds_of(
        {
            "bare": _calls(bare_view, _bodies(linked=True)),
            "linked": _calls(webhook, _bodies(linked=True)),
            "unlinked": _calls(webhook, _bodies(linked=False)),
            "repeat": _calls(webhook, [event_body("kyc.verified", subject="subject-0")] * EVENTS),
        },
        rounds=ROUNDS,
    )
    sizes = seconds_of(
        {
            "thousand": _calls(webhook, _mixed(), schema=_stored(THOUSAND)),
            "million": _calls(webhook, _mixed(), schema=_stored(MILLION)),
        },
        rounds=ROUNDS,
    )
    ratios = {
        "linked_vs_bare_view": taken["bare"] / taken["linked"],
        "unlinked_vs_bare_view": taken["bare"] / taken["unlinked"],
        "repeat_vs_bare_view": taken["bare"] / taken["repeat"],
        "million_vs_thousand": sizes["thousand"] / sizes["million"],
    }
    rates = {f"{name}_per_second": BATCH / one for name, one in (taken | sizes).items()}
    return Result("webhook", ratios, rates)


def _bodies(*, linked: bool) -> list[bytes]:
    """Enough for all rounds, each newer than the one before."""
    began_at = timezone.now() - timedelta(hours=12)
    subjects = range(0 if linked else 1, storm.SUBJECTS, 2)
    return [
        event_body(
            TYPES[number % len(TYPES)],
            subject=f"subject-{subjects[number % len(subjects)]}",
            at=began_at + timedelta(milliseconds=number),
            kyc_level="level_1",
            claim_type="age_over_18",
        )
        for number in range(EVENTS)
    ]


def _mixed() -> list[bytes]:
    pairs = zip(_bodies(linked=True), _bodies(linked=False), strict=True)
    return [body for pair in pairs for body in pair][:EVENTS]


def _calls(view: View, bodies: list[bytes], *, schema: str = "public") -> Callable[[], None]:
    """A function that gives ``view`` the next batch, in the schema where the events are."""
    requests = [
        _requests.post(
            "/",
            body,
            content_type="application/json",
            headers={"X-Webhook-Signature": signed(body)},
        )
        for body in bodies
    ]
    waiting = iter(requests)

    def call() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET search_path TO {schema}, public")
        for request in islice(waiting, BATCH):
            assert view(request).status_code == 200

    return call


def _stored(rows: int) -> str:
    """The name of a schema with a table of so many events, beside the other one."""
    schema = f"with_{rows}"
    table = f'{schema}."{TABLE}"'
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {schema}")
        cursor.execute(f'CREATE TABLE {table} (LIKE public."{TABLE}" INCLUDING IDENTITY)')
        cursor.execute(f"SET search_path TO {schema}, public")
        fill(WebhookEvent, EVENT, rows=rows)
        # Made afterwards: a million keys, each put in its place, take minutes.
        cursor.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s",
            [TABLE],
        )
        for (definition,) in cursor.fetchall():
            cursor.execute(definition.replace(" ON public.", f" ON {schema}."))
        cursor.execute(f"VACUUM ANALYZE {table}")
    return schema
