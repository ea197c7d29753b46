"""Brokers that take what is published, or do not, and handlers of the site."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from queue import Empty
from typing import Any

import pytest
from celery import Celery
from celery.app import app_or_default
from django.contrib.auth.signals import user_logged_out
from django.db import connection
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from django.dispatch import Signal

from django_identity import background, handlers, signals
from django_identity.handlers import on_event
from django_identity.policy import IdentityPolicy

Handled = Callable[[str], None]
OURS = [each for each in vars(signals).values() if isinstance(each, Signal)]


@pytest.fixture(autouse=True)
def _nobody_hears_of_the_next_test(monkeypatch):
    """The handlers and receivers of a test end with it."""
    monkeypatch.setattr(handlers, "_registry", deepcopy(handlers._registry))
    of_models = (pre_delete, pre_save, post_delete, post_save)
    heard = [*OURS, user_logged_out, *of_models]
    before = [list(each.receivers) for each in heard]
    yield
    for signal, receivers in zip(heard, before, strict=True):
        signal.receivers = receivers
        signal.sender_receivers_cache.clear()


@contextmanager
def celery_app(broker_url: str) -> Iterator[Celery]:
    """The site's Celery app, for the time of the block."""
    before = app_or_default()
    # Celery prefers the environment's broker, with which a leg of the tests may run.
    address = os.environ.pop("CELERY_BROKER_URL", None)
    app = Celery("tests", broker=broker_url)
    app.set_current()
    background.remember_app()
    try:
        yield app
    finally:
        before.set_current()
        background.remember_app()
        if address is not None:
            os.environ["CELERY_BROKER_URL"] = address


@pytest.fixture
def published():
    """A broker in memory; call it for the arguments of all tasks that were published so far."""
    with celery_app("memory://") as app, app.connection_for_read() as connection:
        queue = connection.SimpleQueue(app.conf.task_default_queue)
        queue.clear()
        seen: list[Any] = []

        def drained() -> list[Any]:
            with suppress(Empty):
                while True:
                    message = queue.get(block=False)
                    message.ack()
                    seen.append(message.payload[0])
            return seen

        yield drained
        queue.close()


@pytest.fixture
def dead_broker():
    with celery_app("amqp://127.0.0.1:9//") as app:
        app.conf.broker_transport_options = {"max_retries": 1, "interval_start": 0.0}
        yield


@pytest.fixture
def handled() -> Handled:
    """``handled("claim.issued")``: the site has a handler of the type, until the test ends."""
    return lambda event_type: on_event(event_type, name="of a test")(repr) and None


class Asked(IdentityPolicy):
    """Remembers what it was asked, with which claims, and says yes.

    It tries to write into them, which no other question and no gate sees.
    """

    questions: list[tuple[str, dict[str, Any]]] = []

    @classmethod
    def names(cls):
        return [name for name, _ in cls.questions]

    def note(self, name, claims):
        with suppress(AttributeError):
            claims.update(unique_human=True)
        self.questions.append((name, dict(claims)))
        return True

    def may_sign_up(self, *, claims, **_given):
        return self.note("may_sign_up", claims)

    def may_sign_in(self, user, *, claims):
        return self.note("may_sign_in", claims)

    def may_link(self, user, profile, *, claims):
        return self.note("may_link", claims)

    def update_user(self, user, *, claims, **_given):
        self.note("update_user", claims)


@pytest.fixture
def asking(service, use_policy):
    """The service. The policy says yes, and remembers what it was asked."""
    use_policy(Asked)
    Asked.questions.clear()
    return service


@pytest.fixture
def heard():
    """The name of each signal that was sent after the commit, and what it told.

    ``key``: of the user, as it was then.
    """
    told = []
    for name, signal in vars(signals).items():
        if isinstance(signal, Signal):

            def receive(sender, *, name=name, user=None, **arguments):
                told_by = "early" if connection.in_atomic_block else name
                key = user and user.pk
                told.append((told_by, {"user": user, "key": key, **arguments}))

            signal.connect(receive, weak=False)
    return told


@pytest.fixture
def use_policy(settings):
    """``use_policy(Kind)``: the site's policy is of this class, until the test ends."""

    def use(kind):
        path = f"{kind.__module__}.{kind.__qualname__}"
        settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, "POLICY": path}

    return use
