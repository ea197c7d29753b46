"""The process of one site: ``python -m …peers.worker sign_in|webhook``; ``PEER`` names the site.

It makes a database and a first user, prints how often one piece of work queries, and then, for
each number on standard input, does the work so often and prints the CPU milliseconds of each.
"""

import hashlib
import hmac
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlsplit

import django
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.peers.sites import PEER, SITE, SUBJECT, WEBHOOK_SECRET

WARM_UP = 10
BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
HOST = {"SERVER_NAME": "shop.example", "secure": True}


def main() -> None:
    django.setup()
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        work = sign_ins if sys.argv[1] == "sign_in" else WEBHOOKS[PEER]
        once = work().__next__
        for _ in range(WARM_UP):
            once()()
        say([queries(once())])
        for line in sys.stdin:
            say([milliseconds(once()) for _ in range(int(line))])
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def say(value: object) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  the parent reads it


def milliseconds(do: Callable[[], object]) -> float:
    began = time.process_time()
    do()
    return (time.process_time() - began) * 1000


def queries(do: Callable[[], object]) -> int:
    """The statements, without those that begin and end transactions."""
    with CaptureQueriesContext(connection) as captured:
        do()
    return sum(not each["sql"].startswith(BOUNDARIES) for each in captured)


def sign_in() -> Client:
    """Press the button, approve at the service, and come back signed in."""
    browser = Client()
    leaving = (browser.post if SITE.by_form else browser.get)(SITE.start, **HOST)
    assert leaving.status_code == 302, leaving.content
    sent = dict(parse_qsl(urlsplit(leaving["Location"]).query))
    # The service gets the nonce back with the code; an OpenID Connect client checks it.
    given = {"code": sent.get("nonce", "a-code"), "state": sent["state"]}
    arrived = browser.get(urlsplit(sent["redirect_uri"]).path, given, **HOST)
    assert (arrived.status_code, arrived["Location"]) == (302, "/who/"), arrived.content
    return browser


def sign_ins() -> Iterator[Callable[[], object]]:
    """A person who has signed in before, in a browser that has not."""
    first, second = (sign_in().get("/who/", **HOST).content for _ in range(2))
    assert first == second, (first, second)
    assert not first.startswith(b"None")
    return itertools.repeat(sign_in)


def our_webhooks() -> Iterator[Callable[[], object]]:
    """A new level of a linked person: the event is stored, and the person's row changed."""
    sign_in()
    for number in itertools.count():
        event = {
            "event_type": "kyc.verified",
            "event_id": f"evt_{number}",
            "timestamp": timezone.now().isoformat(),
            "data": {"user_id": SUBJECT, "kyc_level": "level_2", "status": "verified"},
        }
        body = json.dumps(event).encode()
        signature = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
        yield posted("/identity/webhook/", body, {"X-Webhook-Signature": signature})


def webhooks_of_dj_stripe() -> Iterator[Callable[[], object]]:
    """An event without a handler of dj-stripe's own: the trigger and the event are stored.

    The account of the API key is known, as after the first event.
    """
    from djstripe.models import Account, APIKey, WebhookEndpoint  # noqa: PLC0415  needs the apps

    account = Account.objects.create(id="acct_1", livemode=False, stripe_data={})
    common = {"livemode": False, "djstripe_owner_account": account}
    key = django.conf.settings.STRIPE_TEST_SECRET_KEY
    APIKey.objects.create(id="key_1", secret=key, type="secret", **common)
    where = {"url": "https://shop.example/stripe/", "secret": WEBHOOK_SECRET}
    endpoint = WebhookEndpoint.objects.create(
        id="we_1",
        enabled_events=["*"],
        stripe_data={},
        **where,
        **common,
    )
    for number in itertools.count():
        now = int(time.time())
        event = {
            "id": f"evt_{number}",
            "object": "event",
            "api_version": "2026-05-27.dahlia",
            "created": now,
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": "balance.available",
            "data": {
                "object": {"object": "balance", "available": [], "livemode": False},
            },
        }
        body = json.dumps(event).encode()
        signed = hmac.new(
            WEBHOOK_SECRET.encode(),
            f"{now}.".encode() + body,
            hashlib.sha256,
        )
        signature = f"t={now},v1={signed.hexdigest()}"
        address = f"/stripe/webhook/{endpoint.djstripe_uuid}/"
        yield posted(address, body, {"Stripe-Signature": signature})


WEBHOOKS = {"ours_all": our_webhooks, "dj_stripe": webhooks_of_dj_stripe}


def posted(address: str, body: bytes, headers: dict[str, str]) -> Callable[[], object]:
    handler, given = get_wsgi_application(), {"headers": headers, **HOST}
    request = RequestFactory().post(
        address,
        body,
        content_type="application/json",
        **given,
    )

    def post() -> None:
        response = handler.get_response(request)
        assert response.status_code == 200, response.content

    return post


if __name__ == "__main__":
    main()
