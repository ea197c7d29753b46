"""The thread that signs and sends due deliveries (spec: Webhook signature)."""

import hashlib
import hmac
import logging
import secrets
import threading
import time

import httpx
from django.db import connection

from django_identity.sandbox import clock, envelope
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.deliveries import Attempt
from django_identity.sandbox.models import Delivery

SIGNATURE_HEADER = "x-webhook-signature"
EXCERPT_BYTES = 2_000
SECONDS_TO_ANSWER = 10
LONGEST_REST = 60.0

logger = logging.getLogger(__name__)


def sign(body: bytes, secret: str) -> str:
    """Return the lowercase hexadecimal HMAC-SHA-256 of ``body``."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def new_secret() -> str:
    """Return a random webhook secret."""
    return f"whsec_{secrets.token_urlsafe(32)}"


class Sender(threading.Thread):
    """Sends due deliveries, one after the other, until it is stopped.

    A sandbox that starts with an existing database sends again what the previous process was
    sending when it ended.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        # Public authorities, and those of SSL_CERT_FILE. Loading them takes 20 ms.
        self._tls = httpx.create_ssl_context()
        self._stopping = False

    def stop(self) -> None:
        """Start no further attempt, and give the running one a moment to end."""
        self._stopping = True
        deliveries.wake()
        self.join(1)

    def run(self) -> None:
        """Send one delivery after the other, and sleep until one is due."""
        while not self._stopping:
            deliveries.woken.clear()
            try:
                rest = self._send_next()
            except Exception:
                logger.exception("A delivery could not be attempted.")
                rest = 1.0
            deliveries.woken.wait(min(LONGEST_REST, rest))
        connection.close()

    def _send_next(self) -> float:
        """Send the next delivery, if it is due; return the seconds until there may be one."""
        delivery = deliveries.next_waiting()
        if delivery is None or delivery.next_attempt_at is None:
            return LONGEST_REST
        seconds = (delivery.next_attempt_at - clock.now()).total_seconds()
        if seconds > 0:
            return seconds
        deliveries.conclude(delivery, self._attempt(delivery))
        return 0

    def _attempt(self, delivery: Delivery) -> Attempt:
        """Send ``delivery`` once: a copy to its address, any other to the one registered now."""
        body = delivery.body.encode()
        sent_at = clock.now()
        url = delivery.copy_to or delivery.client.webhook_url
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Sandbox-Identity-Webhooks",
            SIGNATURE_HEADER: sign(body, delivery.client.webhook_secret),
        }

        status = None
        excerpt = ""
        problem = ""
        started = time.monotonic()
        try:
            answer = httpx.post(
                envelope.http_address("url", url),
                content=body,
                headers=headers,
                timeout=SECONDS_TO_ANSWER,
                verify=self._tls,
                trust_env=False,
            )
            status = answer.status_code
            excerpt = answer.content[:EXCERPT_BYTES].decode(errors="replace")
            if answer.is_redirect:
                problem = "A redirect is not followed."
        except Invalid:
            problem = "The application has no webhook address any more."
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            problem = f"{type(error).__name__}: {error}"

        milliseconds = round((time.monotonic() - started) * 1000, 1)
        return Attempt(
            sent_at.isoformat(),
            url,
            headers,
            status,
            excerpt,
            problem,
            milliseconds,
        )
