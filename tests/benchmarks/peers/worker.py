"""The process of one site: ``python -m …peers.worker sign_in|webhook``; ``PEER`` names the site.

It makes a database and a first user, prints what one piece of work queries, and then, for each
number on standard input, does the work so often and prints the CPU milliseconds of each.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import django
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.utils import timezone

from tests.benchmarks.peers.browser import Browser, sign_in
from tests.benchmarks.peers.person import SUBJECT

WARM_UP = 10
BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
#: One piece of work, of which only the returned part is measured.
Work = Callable[[], Callable[[], object]]


def main() -> None:
    django.setup()
    site = import_module(f"tests.benchmarks.peers.sites.{os.environ['PEER']}")
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        work = {"sign_in": _sign_in, "webhook": WEBHOOKS.get(os.environ["PEER"])}[sys.argv[1]](site)
        for _ in range(WARM_UP):
            work()()
        _say(_queries(work()))
        for line in sys.stdin:
            _say([_milliseconds(work()) for _ in range(int(line))])
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _say(value: object) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  the parent reads it


def _milliseconds(do: Callable[[], object]) -> float:
    began = time.process_time()
    do()
    return (time.process_time() - began) * 1000


def _queries(do: Callable[[], object]) -> list[str]:
    """The statements, without those that begin and end transactions."""
    statements = []

    def note(execute: Any, sql: str, *given: Any) -> Any:
        if not sql.startswith(BOUNDARIES):
            statements.append(sql)
        return execute(sql, *given)

    with connection.execute_wrapper(note):
        do()
    return statements


def _sign_in(site: Any) -> Work:
    """A person who has signed in before, in a browser that has not."""
    application = get_wsgi_application()

    def once() -> Browser:
        return sign_in(application, site.START, by_form=site.BY_FORM)

    first, second = (once().get("/who/")[2] for _ in range(2))
    if first != second or first.startswith(b"None"):
        raise SystemExit(f"signed in as {first!r}, then as {second!r}")
    return lambda: once


def _our_webhook(site: Any) -> Work:
    """A new level of a linked person: the event is stored, and the person's row changed."""
    _sign_in(site)
    numbers = itertools.count()

    def delivery() -> Callable[[], object]:
        event = {
            "event_type": "kyc.verified",
            "event_id": f"evt_{next(numbers)}",
            "timestamp": timezone.now().isoformat(),
            "data": {"user_id": SUBJECT, "kyc_level": "level_2", "status": "verified"},
        }
        body = json.dumps(event).encode()
        signature = hmac.new(site.WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
        return _posted(site.WEBHOOK, body, HTTP_X_WEBHOOK_SIGNATURE=signature)

    return delivery


def _webhook_of_dj_stripe(_site: Any) -> Work:
    """An event without a handler of dj-stripe's own: the trigger and the event are stored.

    The account of the API key is known, as after the first event.
    """
    from djstripe.models import Account, APIKey, WebhookEndpoint  # noqa: PLC0415  needs the apps

    account = Account.objects.create(id="acct_1", livemode=False, stripe_data={})
    key = django.conf.settings.STRIPE_TEST_SECRET_KEY
    APIKey.objects.create(
        id="key_1", secret=key, type="secret", livemode=False, djstripe_owner_account=account
    )
    secret = "whsec_of_a_benchmark"
    endpoint = WebhookEndpoint.objects.create(
        id="we_1",
        livemode=False,
        secret=secret,
        url="https://shop.example/stripe/",
        enabled_events=["*"],
        djstripe_owner_account=account,
        stripe_data={},
    )
    address = f"/stripe/webhook/{endpoint.djstripe_uuid}/"
    numbers = itertools.count()

    def delivery() -> Callable[[], object]:
        now = int(time.time())
        event = {
            "id": f"evt_{next(numbers)}",
            "object": "event",
            "api_version": "2026-05-27.dahlia",
            "created": now,
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": "balance.available",
            "data": {"object": {"object": "balance", "available": [], "livemode": False}},
        }
        body = json.dumps(event).encode()
        signed = hmac.new(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        return _posted(address, body, HTTP_STRIPE_SIGNATURE=f"t={now},v1={signed}")

    return delivery


WEBHOOKS = {"ours_all": _our_webhook, "dj_stripe": _webhook_of_dj_stripe}


def _posted(address: str, body: bytes, **headers: str) -> Callable[[], object]:
    browser = Browser(get_wsgi_application())

    def post() -> None:
        status, _, content = browser.call("POST", address, body, "application/json", **headers)
        if status != 200:
            raise SystemExit(f"{address} answered {status}: {content[:2000]!r}")

    return post


if __name__ == "__main__":
    main()
