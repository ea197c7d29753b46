"""The people's pages: what they say, and what they may not contain."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.template import Context, RequestContext, Template, TemplateSyntaxError
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone, translation

import django_identity
from django_identity.templatetags.django_identity_pages import moment
from tests.factories import make_claim, make_identity, make_identity_by_code, make_user
from tests.views.connect.pages import LIVE, browser_of

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(django_identity.__file__).parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "django_identity").glob("*.css"))
PHYSICAL = re.compile(
    r"(?<![\w-])(?:(?:margin|padding|border|inset)-)?(?:left|right)\s*[:;]"
)
FOREIGN = re.compile(r"(?:src|href|action|url\()\s*=?\s*[\"']?(?:https?:)?//")
GROUPED = re.compile('="[^"]*\\d[.,\u202f\u00a0 ]\\d{3}[^"]*"')
INLINE = re.compile(r"<script|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:")


def login_page(client: Client, **query: str) -> str:
    response = client.get(reverse("identity:login", query=query))
    return response.content.decode().replace("\xa0", " ")


def test_pages_bring_nothing_inline_and_nothing_of_others():
    """As a strict policy demands. Styles have logical properties alone, for either direction."""
    for template in TEMPLATES:
        refused = f"{INLINE.pattern}|{FOREIGN.pattern}"
        assert not re.search(refused, template.read_text()), template
    for style in STYLES:
        refused = rf"{PHYSICAL.pattern}|@import|url\("
        assert not re.search(refused, style.read_text()), style


@pytest.mark.parametrize(
    "missing",
    ["Call +1 555 0100 now", "<b>x</b>", "age_over_18=" + "x" * 40, "a" * 65, "x=y=z", "\u202e",
     "country_resident=PT|XX", "country_resident=PT|", "country_resident=|", "shoe_size=1|2",
     "country_resident=<b>|PT", "age_over_18|unique_human"],
)  # fmt: skip
def test_a_link_cannot_put_words_into_our_mouth(client, missing):
    assert "You need" not in login_page(client, missing=missing)


def test_the_sign_in_page_says_what_is_needed(client):
    for missing, words in {
        "age_over_18": "You need to be 18 or older",
        "country_resident=NG": "You need to live in Nigeria",
        "level_2": "You need verification at level 2",
    }.items():
        page = login_page(client, missing=missing)
        assert words in page
        assert "Name, e-mail address, country and photo" in page


@pytest.mark.parametrize(
    ("missing", "is_offered"), [("", True), ("level_2", True), ("age_over_18", False)]
)
def test_a_code_is_offered_where_it_may_help(missing, is_offered):
    user = make_user()
    page = login_page(browser_of(user), next="/adults/", missing=missing)
    assert ("Use a code from your identity service" in page) is is_offered
    make_identity(user, kyc_level="level_1")
    assert "Use a code" not in login_page(browser_of(user), missing=missing)


def test_the_other_way_in_leads_on(client, settings):
    """The site's own sign-in is offered to nobody but those who are not signed in."""
    assert "/accounts/login/?next=%2Fadults%2F" in login_page(client, next="/adults/")
    assert "/accounts/login/" not in login_page(
        browser_of(make_user()), next="/adults/"
    )
    settings.IDENTITY_LOCAL_SIGN_IN_URL = "/sign-in/?by=password"
    page = client.get(reverse("identity:login"), {"next": "/adults/"})
    assert (
        page.context["local_sign_in_url"] == "/sign-in/?by=password&next=%2Fadults%2F"
    )
    # Other errors have no use for it, so that a wrong one breaks none of their pages.
    settings.IDENTITY_LOCAL_SIGN_IN_URL = "no-such-page"
    assert client.get(reverse("identity:callback")).status_code == 400


def test_a_page_of_a_live_site_is_not_marked(settings):
    user = make_user()
    make_identity(user, environment="live")
    address = reverse("identity:account")
    assert "Test environment" in browser_of(user).get(address).content.decode()
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **LIVE}
    page = browser_of(user).get(address, secure=True).content.decode()
    assert "Test environment" not in page


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "Nov. 21, 2026 9:09 p.m. UTC"), ("fr", "21 novembre 2026 21:09 UTC"),
     ("ar", "21 نوفمبر، 2026 9:09 م UTC")],
)  # fmt: skip
def test_a_time_is_written_as_the_language_writes_it(language, words):
    """Django knows no date with a time in Arabic, and falls back to the English order."""
    with translation.override(language), timezone.override(UTC):
        assert words in moment(datetime(2026, 11, 21, 21, 9, tzinfo=UTC))


@pytest.mark.parametrize("language", ["en", "fr", "pt-br"])
def test_a_number_for_browsers_is_not_written_for_people(language, settings):
    """A site that groups digits does so in sentences, not in attributes and addresses."""
    settings.USE_THOUSAND_SEPARATOR, settings.LANGUAGE_CODE = True, language
    user = make_user(pk=1234567)
    make_claim(make_identity_by_code(user, pk=7654321))
    browser = browser_of(user)
    pages = [
        browser.get(reverse(f"identity:{name}")).content.decode()
        for name in ("connect", "login", "connected", "account", "disconnect", "erase")
    ]
    assert [found for page in pages for found in GROUPED.findall(page)] == []
    assert 'maxlength="1000"' in pages[0]


# ``{% identity_login_button %}`` on a page of the site's own


def render(tag: str, **context: object) -> str:
    request = RequestFactory().get("/")
    return Template("{% load identity %}" + tag).render(
        RequestContext(request, context)
    )


@pytest.mark.parametrize("given", ['size="huge"', 'theme="neon"', 'theme="Filled"'])
def test_an_unknown_look_is_refused(given):
    with pytest.raises(TemplateSyntaxError):
        render("{% identity_login_button " + given + " %}")


def test_what_is_given_is_escaped():
    button = "{% identity_login_button label=evil next=evil %}"
    assert "<script" not in render(button, evil='"><script>alert(1)</script>')


def test_a_plain_page_needs_nothing_else():
    page = render('{% identity_login_button next="/adults/" %}')
    assert page.count("<form") == page.count("<button") == page.count("<svg") == 1
    assert 'method="post" action="/identity/login/"' in page
    assert "csrfmiddlewaretoken" in page
    assert 'name="next" value="/adults/"' in page
    assert page.count("button.css") == 1
    button = page[page.index("<button") :]
    words = re.sub(r"<[^>]+>", " ", button).split()
    assert " ".join(words) == "Continue with your identity service"
    assert 'aria-hidden="true"' in button
    assert not re.search(r"style=|onclick=|<script|<style", page)
    # Also where there is no request, as in a fragment of a page.
    page = Template("{% load identity %}{% identity_login_button %}").render(Context())
    assert "button.css" in page
    assert "csrfmiddlewaretoken" not in page
