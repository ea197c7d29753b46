"""Text that the database cannot hold leaves the rest of the row, and a check says so."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import Tags, run_checks
from django.db import connection
from django.test import Client

from django_identity import charset
from django_identity.instruments.signs import diagnose
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    StoredClaim,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import SECRET, deliver
from tests.factories import make_claim, make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, sign_in
from tests.views.connect.pages import browser_of, hand_in

# Beyond the characters of utf8mb3, of LATIN1, and of ASCII.
LONE = "\N{CJK UNIFIED IDEOGRAPH-20BB7}"
NAMES = {
    "kanji": f"{LONE}\N{CJK UNIFIED IDEOGRAPH-7530}",
    "cyrillic": "Жанна",
    "latin": "Zoë",
}

only_mysql = pytest.mark.skipif(
    connection.vendor != "mysql", reason="MySQL's and MariaDB's own"
)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("", ("kanji", "cyrillic", "latin")),
        ("utf8mb3", ("cyrillic", "latin")),
        ("latin1", ("latin",)),
        ("win1251", ("cyrillic",)),
        ("euc_tw", ()),
    ],
)
def test_what_a_character_set_lacks_is_a_question_mark(
    name: str, stored: tuple[str]
) -> None:
    """One that Python does not know is held to have no more than ASCII."""
    kept = [
        which for which, text in NAMES.items() if charset.converted(text, name) == text
    ]
    assert kept == [*stored]
    for text in (*NAMES.values(), "Ada"):
        assert len(charset.converted(text, name)) == len(text)
        assert charset.converted(text.replace(LONE, "a"), "utf8mb3") == text.replace(
            LONE, "a"
        )
    assert charset.converted("Ada", name) == "Ada"


def says_so() -> list[str]:
    found = run_checks(tags=[Tags.database], databases=["default"])
    return [each.msg for each in found if each.id == "django_identity.E072"]


@pytest.mark.django_db
def test_a_complete_database_needs_nothing() -> None:
    charset.lacking.cache_clear()
    assert all(map(charset.holds, NAMES.values()))
    assert says_so() == []


def convert(name: str) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith(("django_identity_", "auth_user")):
                quoted = connection.ops.quote_name(table)
                cursor.execute(f"ALTER TABLE {quoted} CONVERT TO CHARACTER SET {name}")
    charset.lacking.cache_clear()


@pytest.fixture
def old_tables(transactional_db: None) -> Iterator[None]:
    """As they are in a database of MySQL 5 that was never converted."""
    convert("utf8mb3")
    yield
    convert("utf8mb4")


@only_mysql
def test_events_and_sign_ins_at_a_database_of_utf8mb3(
    old_tables: None, service: FakeService, settings: Any
) -> None:
    """No character of the service's, or of an address, stops them. The check says what to do."""
    settings.DJANGO_IDENTITY = {"default": service.settings(WEBHOOK_SECRETS=[SECRET])}
    (message,) = says_so()
    assert "utf8mb3" in message
    assert any("utf8mb3" in each.message for each in diagnose())
    claim = make_claim(
        make_identity(make_user(), scopes=["kyc:read"]), provider=f"{LONE} Bank"
    )
    claim.refresh_from_db()
    assert claim.provider == "? Bank"
    deliver(
        "kyc.verified",
        kyc_level="level_2",
        provider=f"{LONE} Bank",
        event_id=f"evt-{LONE}",
    )
    assert LinkedIdentity.objects.get().kyc_provider == "? Bank"
    deliver(f"wallet.{LONE}", note=LONE)
    assert WebhookEvent.objects.filter(event_type="wallet.?").exists()
    deliver("claim.revoked", claim_type="age_over_18", provider=f"{LONE} Bank")
    assert StoredClaim.objects.get().revoked
    begin(Client(), f"/{LONE}/?q={LONE}")
    assert AuthorizationRequest.objects.get().next == "/%F0%A0%AE%B7/?q=%F0%A0%AE%B7"


@only_mysql
def test_a_code_whose_request_has_an_odd_number(
    old_tables: None, service: FakeService, settings: Any
) -> None:
    """The code is spent by then, so what it brought is stored."""
    settings.DJANGO_IDENTITY = {"default": service.settings()}
    service.connect = {"request_id": f"req-{LONE}"}
    hand_in(browser_of(make_user()))
    assert LinkedIdentity.objects.get().kyc_level
    assert ConnectRedemption.objects.get().request_id == "req-?"


class Following(IdentityPolicy):
    """The account follows the identity's names."""

    def changed_user_fields(
        self, user: Any, *, profile: Any, **_about: Any
    ) -> dict[str, str]:
        return {"first_name": profile.first_name, "last_name": profile.last_name}


@only_mysql
def test_a_name_that_cannot_be_stored(
    old_tables: None,
    service: FakeService,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is left out of a new account, and overwrites none of an old one."""
    policy = f"{__name__}.Following"
    settings.DJANGO_IDENTITY = {"default": service.settings(POLICY=policy)}
    service.profile = {"last_name": NAMES["kanji"], "first_name": NAMES["cyrillic"]}
    assert sign_in(Client()).status_code == 302
    user = User.objects.get()
    assert (user.first_name, user.last_name) == (NAMES["cyrillic"], "")
    service.profile = {"first_name": NAMES["kanji"], "last_name": "Obi"}
    assert sign_in(Client()).status_code == 302
    user = User.objects.get()
    assert (user.first_name, user.last_name) == (NAMES["cyrillic"], "")
    assert "fields=first_name" in caplog.text
