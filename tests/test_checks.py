"""Each wall that a new site meets is a check with a hint."""

import sys
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.checks import Tags, run_checks
from django.test import override_settings

from django_identity import anonymisation
from django_identity.policy import IdentityPolicy
from tests.test_conf import COMPLETE, check_ids, configured

LIVE = {"ENVIRONMENT": "live", "ENCRYPTION_KEYS": ["a-key-of-its-own-that-is-long-enough"]}
SECURE = {"SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True}


class OwnErasure(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """Nothing: the site's own way."""


class Deleting(IdentityPolicy):
    erasure = "delete"


class OwnFields(IdentityPolicy):
    def new_user_fields(self, **_about: Any) -> dict[str, Any]:
        return {"username": "chosen-by-the-site"}


def reported(number: str) -> bool:
    """Whether the check is reported, and has a hint."""
    found = [each for each in run_checks(tags=[Tags.security]) if each.id.endswith(number)]
    assert all(each.hint for each in found)
    return bool(found)


@override_settings(**SECURE)
def test_one_webhook_secret_for_both_environments() -> None:
    """Events of the test environment would be taken for live ones."""
    test = COMPLETE
    for secrets, is_shared in (
        (test["WEBHOOK_SECRETS"], True),
        (["another-secret-of-live"], False),
    ):
        live = {**COMPLETE, **LIVE, "WEBHOOK_SECRETS": secrets}
        with override_settings(DJANGO_IDENTITY={"default": live, "trial": test}):
            assert reported("E036") is is_shared


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"AUTH_URL": "https://login.example.org/oauth2"}, "E037"),
        ({"KEEP_CLAIMS": ["age_over_81"]}, "W034"),
        ({"WEBHOOK_SECRETS": []}, "W025"),
        ({"ENVIRONMENT": "live"}, "W026"),
        ({**LIVE, "REDIRECT_URI": "http://site.example.org/identity/callback/"}, "E005"),
    ],
)
def test_an_application(changes: dict[str, Any], number: str) -> None:
    with override_settings(**SECURE):
        with configured(**changes):
            assert reported(number)
        with configured(**LIVE):
            assert check_ids() == set()


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"DEBUG": True}, "E038"),
        ({"USE_TZ": False}, "E039"),
        ({"ROOT_URLCONF": "django.contrib.staticfiles.urls"}, "E040"),
    ],
)
def test_a_setting_of_django(changes: dict[str, Any], number: str) -> None:
    with override_settings(**SECURE), configured(**LIVE):
        assert not reported(number)
        with override_settings(**changes):
            assert reported(number)


def test_a_required_field_that_nobody_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own policy fills name and address; a site's own is its own to test."""
    with configured():
        assert not reported("E041")
        monkeypatch.setattr(User._meta.get_field("last_login"), "blank", False)
        assert reported("E041")
        with configured(POLICY="tests.test_checks.OwnFields"):
            assert not reported("E041")


def test_fields_that_an_erasure_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named; a site that erases in its own way knows its own fields."""
    with configured():
        assert not reported("W032")
        monkeypatch.setattr(anonymisation, "cannot_blank", lambda _model: ["shoe_size"])
        assert reported("W032")
        for policy in ("OwnErasure", "Deleting"):
            with configured(POLICY=f"tests.test_checks.{policy}"):
                assert not reported("W032")


@pytest.mark.parametrize("kept_by", ["django-simple-history", "django-reversion"])
def test_former_versions_of_the_user(kept_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure of the package's own leaves them, the one for allauth too."""
    with configured():
        assert not reported("W033")
        if kept_by == "django-reversion":
            reversion = ModuleType("reversion")
            reversion.is_registered = lambda model: model is User  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "reversion", reversion)
            monkeypatch.setattr(apps, "is_installed", lambda name: name == "reversion")
        else:
            monkeypatch.setattr(
                User._meta, "simple_history_manager_attribute", "history", raising=False
            )
        assert reported("W033")
        with configured(POLICY="django_identity.allauth.AllauthPolicy"):
            assert reported("W033")
        with configured(POLICY="tests.test_checks.OwnErasure"):
            assert not reported("W033")
