"""The page "Verify with a code": as it goes well, and twice at once."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import caches
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import ConnectRedemption, LinkedIdentity
from tests.factories import make_identity
from tests.fake_service import refusal
from tests.views.connect.pages import CODE, LOCAL, PASTED, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("days", "holds"), [(0, True), (29, True), (31, False), (400, False)]
)
def test_the_page_says_what_the_gates_say(service, browser, user, days, holds):
    """Of an answer that was made long ago the level has run out."""
    service.connect = {"issued_at": (timezone.now() - timedelta(days=days)).isoformat()}
    page = browser.get(hand_in(browser, PASTED)["Location"]).text
    assert ("You are verified at level 2." in page) is holds
    assert ("Your proof ran out" in page) is not holds
    assert (standing_of(user).level_shortfall("level_2") is None) is holds
    answer = APIClient()
    answer.force_login(user, backend=LOCAL)
    sent = {"connect_code": CODE}
    said = answer.post(reverse("identity_api:connect"), sent, format="json").json()
    assert said["kyc_status"] == ("verified" if holds else "run_out")


def test_a_page_of_elsewhere_is_not_kept(service, browser):
    """``next`` is a path of this site, or the account page."""
    wanted = {"next": "//evil.example"}
    page = browser.get(reverse("identity:connect", query=wanted)).content.decode()
    page += browser.get(hand_in(browser, **wanted)["Location"]).content.decode()
    page += browser.get(reverse("identity:connected", query=wanted)).content.decode()
    assert page.count('<a class="identity-button" href="/identity/account/"') == 2
    assert "evil.example" not in page


def test_the_page_says_what_it_is_about(service, browser):
    """What will be asked for, how long a code works, and a field that suits a phone."""
    page = browser.get(reverse("identity:connect")).content.decode()
    assert "Name, e-mail address and country" in page
    assert "Verification level and date" in page
    assert "works once, and for 10 minutes" in page
    (field,) = re.findall(r'<input type="text"[^>]*>', page)
    assert 'autocomplete="off"' in field
    assert browser.put(reverse("identity:connect")).status_code == 405


def test_a_second_code_updates_what_is_stored(service, browser, user):
    """A code of a subject that is linked updates what is held; other scopes of theirs stay."""
    held: dict[str, Any] = {"kyc_level": "level_1", "kyc_status": "unverified"}
    make_identity(user, scopes=["profile:read"], **held)
    hand_in(browser)
    identity = LinkedIdentity.objects.get()
    assert (identity.kyc_level, identity.kyc_status) == ("level_2", "verified")
    assert (identity.consent, identity.linked_via) == ("granted", "oauth")
    assert identity.scopes == ["profile:read", "profile:basic", "kyc:status"]


def test_a_code_that_shares_no_level(service, browser):
    """There is nothing to share: the account is linked, without a level."""
    service.connect = {"data": {**service.connect_result()["data"], "kyc": None}}
    assert hand_in(browser).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert (identity.consent, identity.kyc_level) == ("granted", "")
    assert identity.connect_person == "Ada O., a***@example.org"


@pytest.mark.parametrize(
    "given", ["", "hello", "CNX-EF34", "CNX-AB12-CD34 CNX-AB12-CD35", "\0"]
)
def test_what_is_no_code_is_not_sent(service, browser, given):
    """The shape is checked here, and such a submit is no try."""
    for _ in range(7):
        page = refused(hand_in(browser, given), "connect_code_malformed", 400)
        assert not given or given not in page
        assert "autofocus" in page[: page.index("<form")]
    assert service.requests == []
    assert not ConnectRedemption.objects.exists()


@pytest.mark.parametrize("is_good", [True, False])
def test_nothing_of_the_code_stays(service, browser, caplog, is_good):
    """Neither page, session, cookie, cache, log nor database holds it."""
    caplog.set_level("DEBUG", logger="django_identity")
    if not is_good:
        service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    response = hand_in(browser, PASTED)
    assert response.status_code == (302 if is_good else 400)
    cached = vars(caches["default"])["_cache"]
    held = (
        f"{response.headers}{response.content!r}{response.cookies}{caplog.text}{cached}"
    )
    held += f"{dict(browser.session)}{browser.cookies}"
    for table in (ConnectRedemption, LinkedIdentity):
        held += str(list(table.objects.values()))
    held += browser.get("/identity/account/").content.decode()
    assert not [
        part for part in (CODE, PASTED, "AB12", "CD34", "ab12 cd34") if part in held
    ]


@pytest.mark.parametrize("has_page", [True, False])
def test_the_next_page_survives_the_sign_in_before_a_code(
    service, client, user, has_page
):
    """From ``connect/?next=`` to the sign-in page, back to the code, and on."""
    with override_settings(
        IDENTITY_LOCAL_SIGN_IN_URL="/accounts/login/" if has_page else None
    ):
        response = client.get(reverse("identity:connect"), {"next": "/adults/?a=1&b=2"})
        address = urlsplit(response["Location"])
        assert address.path == ("/accounts/login/" if has_page else "/identity/login/")
        (back,) = parse_qs(address.query)["next"]
        client.force_login(user, backend=LOCAL)
        form = client.get(back)
    assert form.context["next"] == "/adults/?a=1&b=2"
