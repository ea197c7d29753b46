"""What the service says about a person reaches the site's policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from django_identity.testing.sandbox import RunningSandbox
from tests.fake_service import FakeService
from tests.sign_in import sign_in
from tests.views.bad_input.refusals import refused

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = f"{__name__}.Careful"


class Careful(IdentityPolicy):
    """Takes nobody with a high risk, and keeps the photo's address."""

    def may_sign_up(self, *, profile: Profile, kyc: Any) -> bool:
        return profile.risk_score is None or profile.risk_score < 50

    def new_user_fields(self, *, profile: Profile, kyc: Any) -> dict[str, Any]:
        fields = super().new_user_fields(profile=profile, kyc=kyc)
        return {**fields, "last_name": profile.photo_url}


def careful(given: dict[str, Any]) -> override_settings:
    return override_settings(DJANGO_IDENTITY={"default": {**given, "POLICY": POLICY}})


def test_the_sandbox_tells_the_policy(
    client: Client, settings: Any, identity_sandbox: RunningSandbox,
    identity_sign_in: Callable[..., Any],
) -> None:  # fmt: skip
    """Outside live a photo may come from this machine by plain http, as the sandbox's do."""
    with careful(settings.DJANGO_IDENTITY["default"]):
        assert identity_sign_in(client).status_code == 302
    photo = User.objects.get().last_name
    assert photo.startswith(f"{identity_sandbox.auth_url}/")
    assert photo.startswith("http://127.0.0.1")


@pytest.mark.parametrize(
    ("score", "ends"),
    [(49, None), (50, "sign_up_refused"), (None, None), (-1, None), ("12", None),
     (1.5, None), (50.5, "sign_up_refused"), ("99", "sign_up_refused"), (True, None), ([1], None)],
)  # fmt: skip
def test_a_risk_score_is_a_number(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    score: Any, ends: str | None,
) -> None:  # fmt: skip
    """Or a text that is one; a high score is never taken for none."""
    service.profile = {"risk_score": score}
    with careful(service.settings()):
        response = sign_in(client)
    if ends is None:
        assert response.status_code == 302
    else:
        refused(response, ends, caplog)
