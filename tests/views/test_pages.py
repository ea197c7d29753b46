"""The people's pages: what they say, and what they may not contain."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

import django_identity
from tests.factories import make_claim, make_identity, make_identity_by_code, make_user
from tests.fake_service import FakeService, html
from tests.sign_in import begin
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(django_identity.__file__).parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "django_identity").glob("*.css"))
PHYSICAL = re.compile(r"(?<![\w-])(?:(?:margin|padding|border|inset)-)?(?:left|right)\s*[:;]")
FOREIGN = re.compile(r"(?:src|href|action|url\()\s*=?\s*[\"']?(?:https?:)?//")
INLINE = re.compile(r"<script|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:")


def login_page(client: Client, **query: str) -> str:
    response = client.get(reverse("identity:login", query=query))
    return response.content.decode().replace("\xa0", " ")


def test_templates_pass_a_strict_policy() -> None:
    """No inline script or style, nothing from another host."""
    for template in TEMPLATES:
        text = template.read_text()
        assert not INLINE.search(text), template
        assert not FOREIGN.search(text), template


def test_styles_run_either_way() -> None:
    """Logical properties alone, and nothing from elsewhere."""
    for style in STYLES:
        text = style.read_text()
        assert not PHYSICAL.search(text), style
        assert "@import" not in text
        assert "url(" not in text


@pytest.mark.parametrize(
    "missing",
    ["Call +1 555 0100 now", "<b>x</b>", "age_over_18=" + "x" * 40, "a" * 65, "x=y=z", "\u202e"],
)
def test_a_link_cannot_put_words_into_our_mouth(client: Client, missing: str) -> None:
    """Whatever is not a claim or a level is not shown at all."""
    assert "Needed:" not in login_page(client, missing=missing)


def test_the_sign_in_page_says_what_is_needed(client: Client) -> None:
    """The proof that the page behind asks for, in words, and what the service will be asked."""
    for missing, words in {
        "age_over_18": "Needed: you are 18 or older",
        "country_resident=NG": "Needed: you live in Nigeria",
        "level_2": "Needed: verification at level 2",
    }.items():
        page = login_page(client, missing=missing)
        assert words in page
        assert "Name, e-mail address, country and photo" in page


def test_the_sign_in_page_says_why_the_gate_is_closed() -> None:
    """Somebody who is signed in learns what became of their proof; an open gate is not named."""
    user = make_user()
    claim = make_claim(make_identity(user))
    assert "Needed:" not in login_page(browser_of(user), missing="age_over_18")
    claim.revoked_at = timezone.now()
    claim.save()
    assert "This proof was revoked" in login_page(browser_of(user), missing="age_over_18")


@pytest.mark.parametrize(
    ("missing", "is_offered"),
    [("", True), ("level_2", True), ("age_over_18", False), ("country_resident=NG", False)],
)
def test_a_code_is_offered_where_it_may_help(missing: str, is_offered: bool) -> None:
    """A Connect code says the level and proves no claim; a sign-in at the service brings more."""
    user = make_user()
    page = login_page(browser_of(user), next="/adults/", missing=missing)
    assert ("Use a code from your identity service" in page) is is_offered
    make_identity(user, kyc_level="level_1")
    assert "Use a code" not in login_page(browser_of(user), missing=missing)


def test_who_came_by_code_signs_in() -> None:
    """The page speaks of continuing, not of checking again what never was."""
    user = make_user()
    make_identity_by_code(user)
    page = login_page(browser_of(user), missing="age_over_18")
    assert "A code shares your verification level, and no proofs." in page
    assert "Continue with your identity service</span>" in page


def test_the_other_way_in_leads_on(client: Client, settings: Any) -> None:
    """The site's own sign-in is offered to nobody but those who are not signed in."""
    assert "/accounts/login/?next=%2Fadults%2F" in login_page(client, next="/adults/")
    assert "/accounts/login/" not in login_page(browser_of(make_user()), next="/adults/")
    settings.IDENTITY_LOCAL_SIGN_IN_URL = "/sign-in/?by=password"
    page = client.get(reverse("identity:login"), {"next": "/adults/"})
    assert page.context["local_sign_in_url"] == "/sign-in/?by=password&next=%2Fadults%2F"


def test_the_page_has_its_landmarks(client: Client) -> None:
    """Language, direction, one heading, one main part, and a link that skips to it."""
    page = login_page(client)
    assert '<html lang="en" dir="ltr">' in page
    assert page.count("<h1") == page.count("<main") == 1
    assert 'href="#content"' in page
    assert 'id="content"' in page
    with override_settings(LANGUAGE_CODE="ar"):
        assert '<html lang="ar" dir="rtl">' in login_page(client)


def primary_actions(page: str) -> list[str]:
    """The texts of what looks like a button."""
    found = re.findall(r'class="identity-button"[^>]*>(.*?)</(?:a|button)>', page, re.DOTALL)
    return [re.sub(r"<[^>]+>|\s+", " ", text).strip() for text in found]


@pytest.mark.parametrize(
    ("query", "answers", "code", "action"),
    [
        ({"error": "access_denied"}, {}, "access_denied", "Start again"),
        ({"error": "server_error"}, {}, "authorization_refused", "Start again"),
        ({"code": "c"}, {"token": html("503 No")}, "service_unavailable", "Try again"),
        ({"code": "c"}, {"profile": b"nonsense"}, "", "Try again"),
    ],
)
def test_a_failure_offers_one_way_on(
    client: Client, service: FakeService, query: dict[str, str], answers: dict[str, bytes],
    code: str, action: str,
) -> None:  # fmt: skip
    """What happened, one thing to do next, and the reference of the log line."""
    service.answers.update(answers)
    service.token = {"user_id": "subject-1"}
    state = begin(client, "/adults/")
    page = client.get(reverse("identity:callback"), {**query, "state": state}).content.decode()
    assert primary_actions(page) == [action]
    assert '<h1 tabindex="-1" autofocus>' in page
    is_calm = code == "access_denied"
    assert ("<title>Error:" in page) is not is_calm
    assert (re.search(r"Reference: <code>[0-9a-f]{8}</code>", page) is None) is is_calm
    assert is_calm or code in page


def test_every_page_offers_its_application_alone(settings: Any) -> None:
    """Pages of another application point to that application's addresses."""
    given = settings.DJANGO_IDENTITY["default"]
    live = {"ENVIRONMENT": "live", "BASE_URL": "https://a.example/api/v1"}
    shop = {**given, **live, "AUTH_URL": "https://a.example"}
    settings.DJANGO_IDENTITY = {"default": given, "shop": shop}
    user = make_user()
    make_identity(user, application="shop", environment="live")
    address = reverse("identity:account", args=["shop"])
    page = browser_of(user).get(address, secure=True).content.decode()
    for name in ("login", "download", "disconnect"):
        assert reverse(f"identity:{name}", args=["shop"]) in page
    assert "Test environment" not in page
