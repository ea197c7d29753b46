"""The threads that send what is due, from the moment its cause has committed."""

import logging
import threading

from django.db import connection

from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.courier import Courier
from django_identity.sandbox.models import Delivery

THREADS = 8
LONGEST_REST = 60.0
SECONDS_TO_STOP = 1.0

logger = logging.getLogger(__name__)


class Sender:
    """Attempts due deliveries until it is stopped.

    Which ones are being sent is known here alone, so a sandbox that starts with a kept database
    attempts again what its predecessor was sending when it ended.
    """

    def __init__(self) -> None:
        self._in_flight: dict[int, int] = {}
        self._stopping = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no further attempt; one that is under way gets a moment to end."""
        with deliveries.due:
            self._stopping = True
            deliveries.due.notify_all()
        for thread in self._threads:
            thread.join(SECONDS_TO_STOP / THREADS)

    def _work(self) -> None:
        """Attempt one delivery after the other; nothing ends the thread but the stop."""
        with Courier() as courier:
            while not self._stopping:
                try:
                    self._attempt_next(courier)
                except Exception:
                    logger.exception("A delivery could not be attempted.")
                    self._rest(1)
        connection.close()

    def _attempt_next(self, courier: Courier) -> None:
        """Attempt what is due, or rest until something is."""
        delivery = self._take()
        if delivery is None:
            return
        try:
            deliveries.attempt(delivery, courier)
        finally:
            with deliveries.due:
                del self._in_flight[delivery.pk]

    def _take(self) -> Delivery | None:
        """Take what is due and let the next thread look for more; else rest, and take nothing."""
        with deliveries.due:
            delivery = deliveries.take(self._in_flight)
            if delivery is None:
                self._rest(deliveries.seconds_until_next())
                return None
            self._in_flight[delivery.pk] = delivery.client_id
            deliveries.due.notify()
            return delivery

    def _rest(self, seconds: float | None) -> None:
        """Sleep until woken, or for ``seconds`` if that is sooner."""
        with deliveries.due:
            if not self._stopping:
                deliveries.due.wait(min(LONGEST_REST, seconds or LONGEST_REST))
