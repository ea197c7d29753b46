"""Each wall that a new site meets is a check with a hint."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.core.checks import Tags, run_checks
from django.db import models
from django.test import Client, override_settings
from django.test.utils import isolate_apps

from django_identity.checks import users
from django_identity.policy import IdentityPolicy
from tests.test_conf import COMPLETE, check_ids, configured

LIVE = {"ENVIRONMENT": "live", "ENCRYPTION_KEYS": ["a-key-of-its-own-that-is-long-enough"]}
SECURE = {"SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True}
DJANGO_CSP = [*settings.MIDDLEWARE, "csp.middleware.CSPMiddleware"]
DJANGO_6 = [*settings.MIDDLEWARE, "django.middleware.csp.ContentSecurityPolicyMiddleware"]


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


@pytest.mark.parametrize("backend", ["locmem.LocMemCache", "dummy.DummyCache"])
def test_a_cache_of_each_process(backend: str) -> None:
    """It is right on a developer's machine; a deployed site is told."""
    caches = {"default": {"BACKEND": f"django.core.cache.backends.{backend}"}}
    with override_settings(CACHES=caches):
        assert "django_identity.W027" in deployed_ids()
        assert "django_identity.W027" not in check_ids()
        with override_settings(DEBUG=True):
            assert "django_identity.W027" not in deployed_ids()


def deployed_ids() -> set[str]:
    return {each.id for each in run_checks(tags=[Tags.security], include_deployment_checks=True)}


def test_passwords_without_a_page_for_them() -> None:
    """A page that is set to none is a decision; a missing one may be forgotten."""
    with override_settings():
        del settings.IDENTITY_LOCAL_SIGN_IN_URL
        assert reported("W029")
        with override_settings(LOGIN_URL="/accounts/login/"):
            assert not reported("W029")
        with override_settings(AUTHENTICATION_BACKENDS=settings.AUTHENTICATION_BACKENDS[1:]):
            assert not reported("W029")
    with override_settings(IDENTITY_LOCAL_SIGN_IN_URL=None):
        assert not reported("W029")


@pytest.mark.parametrize(
    ("sources", "is_blocked"),
    [
        (None, False),
        (["'self'"], True),
        ("'self'", True),
        (["'none'"], True),
        (["'self'", "https://login.example.org"], False),
        (["'self'", "https://login.example.org/"], False),
        (["'self'", "https://*.example.org"], False),
        (["login.example.org"], False),
        (["https:"], False),
        (["http:"], True),
        (["*"], False),
        (["https://login.example.org.evil.example"], True),
    ],
)
def test_a_policy_that_stops_the_button(sources: Any, *, is_blocked: bool) -> None:
    """Browsers apply ``form-action`` to the redirect after the form as well."""
    directives = {"default-src": ["'self'"], "form-action": sources}
    with configured():
        with override_settings(
            MIDDLEWARE=DJANGO_CSP, CONTENT_SECURITY_POLICY={"DIRECTIVES": directives}
        ):
            assert reported("W028") is is_blocked
        with override_settings(MIDDLEWARE=DJANGO_6, SECURE_CSP=directives):
            assert reported("W028") is is_blocked
        with override_settings(SECURE_CSP=directives):
            assert not reported("W028")


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.django_db
def test_the_start_page_tells_the_developer(client: Client, *, debug: bool) -> None:
    directives = {"DIRECTIVES": {"form-action": ["'self'"]}}
    with override_settings(MIDDLEWARE=DJANGO_CSP, CONTENT_SECURITY_POLICY=directives, DEBUG=debug):
        page = client.get("/identity/login/").content.decode()
    assert ("django_identity.W028" in page) is debug


@isolate_apps("tests")
def test_user_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a sign-up and an erasure need of the site's user model."""

    class Bare(AbstractBaseUser):
        USERNAME_FIELD = "email"
        email = models.EmailField(primary_key=True)
        phone = models.CharField(max_length=20)

        class Meta:
            app_label = "tests"

    monkeypatch.setattr(users, "get_user_model", lambda: Bare)
    assert {each.id[-4:] for each in users.problems()} == {"W030", "W031"}
    monkeypatch.setattr(users, "get_user_model", lambda: User)
    assert list(users.problems()) == []


def test_a_required_field_that_nobody_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own policy fills name and address; a site's own is its own to test."""
    with configured():
        assert not reported("E041")
        monkeypatch.setattr(User._meta.get_field("last_login"), "blank", False)
        assert reported("E041")
        with configured(POLICY="tests.test_checks.OwnFields"):
            assert not reported("E041")
