"""The threads that send due deliveries."""

import logging
import ssl
import threading
from contextlib import closing

from django.db import connection

from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.courier import Courier
from django_identity.sandbox.models import Delivery

THREADS = 8
LONGEST_REST = 60.0
SECONDS_TO_STOP = 1.0

logger = logging.getLogger(__name__)


class Sender:
    """Sends due deliveries until it is stopped.

    Only this object knows which deliveries are being sent. A sandbox that starts with an existing
    database therefore sends again what the previous process was sending when it ended.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._in_flight: dict[int, int] = {}
        self._stopping = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Start no further attempt, and give running attempts a moment to end."""
        with deliveries.due:
            self._stopping = True
            deliveries.due.notify_all()
        for thread in self._threads:
            thread.join(SECONDS_TO_STOP / THREADS)

    def _work(self) -> None:
        """Send one delivery after the other, until the stop."""
        with closing(Courier(self._tls)) as courier:
            while not self._stopping:
                try:
                    self._attempt_next(courier)
                except Exception:
                    logger.exception("A delivery could not be attempted.")
                    self._rest(1)
        connection.close()

    def _attempt_next(self, courier: Courier) -> None:
        """Send a due delivery, or sleep until one is due."""
        delivery = self._take()
        if delivery is None:
            return
        try:
            deliveries.attempt(delivery, courier)
        finally:
            with deliveries.due:
                del self._in_flight[delivery.pk]

    def _take(self) -> Delivery | None:
        """Take a due delivery and wake the next thread; without one, sleep and return None."""
        with deliveries.due:
            delivery = deliveries.take(self._in_flight)
            if delivery is None:
                self._rest(deliveries.seconds_until_next())
                return None
            self._in_flight[delivery.pk] = delivery.client_id
            deliveries.due.notify()
            return delivery

    def _rest(self, seconds: float | None) -> None:
        """Sleep until woken, for ``seconds`` at most."""
        with deliveries.due:
            if not self._stopping:
                deliveries.due.wait(min(LONGEST_REST, seconds or LONGEST_REST))
