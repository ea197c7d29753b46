"""A site that is all right, for tests that break it."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from celery import current_app
from django.utils import timezone

from django_identity import background
from tests.commands import broken_setups as broken
from tests.commands.broken_setups import Site
from tests.fake_service import answer, refusal, serving


@pytest.fixture
def site(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site that is all right, and a service that knows nobody by the doctor's name."""
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    before = current_app._get_current_object()
    with serving() as service, ExitStack() as stack:
        service.answers["token"] = answer(
            {"error": "invalid_grant"},
            status="400 Bad Request",
        )
        service.answers["profile"] = refusal("UNAUTHORIZED", "401 Unauthorized")
        made = Site(service, settings, stack)
        made.configure()
        made.use_broker("filesystem://")
        broken.upkeep(begun_at=timezone.now())(made)
        yield made
    before.set_current()
    background.remember_app()
