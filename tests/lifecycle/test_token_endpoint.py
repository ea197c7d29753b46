"""What the token endpoint's answers mean: only the service's own ``invalid_grant`` ends a grant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.models import LinkedIdentity, TokenGrant
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer
from tests.lifecycle.refetching import all_refetched

pytestmark = pytest.mark.django_db(transaction=True)

AN_HOUR = timedelta(hours=1)
NOT_FOUND = "404 Not Found"
FRAMEWORKS_404 = {
    "detail": {"detail": "Not Found"},
    "error": {"error": "Not Found", "status": 404, "path": "/oauth2/token"},
    "envelope": {"success": False, "error": {"code": "NOT_FOUND"}},
    "problem": {"type": "about:blank", "title": "Not Found", "status": 404},
}


def make_due(number: int) -> None:
    """Identities whose re-fetch is due, with KYC, and whose access token has expired."""
    past = timezone.now() - AN_HOUR
    for index in range(number):
        identity = make_identity(
            make_user(f"user-{index}"), subject=f"subject-{index}", refetch_due_at=past,
            scopes=["claims:read", "kyc:read"], kyc_said_at=None,
        )  # fmt: skip
        make_grant(identity, refresh_token=f"rt-0-{index}", access_expires_at=past)


@pytest.mark.parametrize("body", FRAMEWORKS_404.values(), ids=FRAMEWORKS_404)
def test_a_frameworks_404_stops_upkeep(
    service: FakeService, caplog: pytest.LogCaptureFixture, body: dict[str, object]
) -> None:
    """Nobody loses a grant, a run stops at the second such answer, and the log says why."""
    make_due(50)
    service.answers["token"] = answer(body, status=NOT_FOUND)
    for _ in range(3):
        all_refetched()
    assert service.calls("token") == 6
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    tried = LinkedIdentity.objects.filter(refetch_due_at__gt=timezone.now())
    assert tried.filter(refetch_failures=1, last_error="service_unavailable").count() == 6, (
        service.calls("token")
    )
    assert "HTTP 404" in caplog.text
