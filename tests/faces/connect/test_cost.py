"""What a redemption costs the site's database: ten queries before the service is asked, then five.

Whoever comes in without a session is signed in as well: what Django's own ``login`` asks of the
database is not counted.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse

from tests import hostile
from tests.faces.connect.pages import CODE, hand_in
from tests.hostile import HostileService
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


class SentStatements:
    """What a request asks of the database, transaction frames apart."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("BEGIN", "SAVEPOINT", "RELEASE")):
            self.statements.append(sql)
        return execute(sql, params, many, context)


def redeemed(service: HostileService, client: Client, *, kind: str) -> tuple[int, list[str]]:
    """How many statements came before the service was asked, and all of them."""
    sent = SentStatements()
    before_asking: list[int] = []
    result = hostile.answer({"success": True, "data": service.connect_result()})

    def count(arrived: Any) -> None:
        before_asking.append(len(sent.statements))
        arrived.sendall(result)

    service.answers["request"] = count
    with connection.execute_wrapper(sent):
        if kind == "page":
            assert hand_in(client).status_code == 302
        else:
            body = {"connect_code": CODE}
            address = reverse("identity:api:connect")
            assert client.post(address, body, content_type="application/json").status_code == 200
    assert 2 <= before_asking[0] < len(sent.statements), sent.statements
    return before_asking[0], sent.statements


@pytest.mark.parametrize("kind", ["page", "json"])
@pytest.mark.parametrize("held", ["nothing", "an identity", "a revoked one"])
def test_few_queries(
    service: HostileService, browser: Client, user: User, kind: str, held: str
) -> None:
    """At most ten before the service is asked, and fifteen in all, whoever comes."""
    if held != "nothing":
        consent = "granted" if held == "an identity" else "revoked"
        make_claim(make_identity(user, consent=consent))
    before, statements = redeemed(service, browser, kind=kind)
    assert before <= 10, statements
    assert len(statements) <= 15, statements


@pytest.mark.parametrize("kind", ["page", "json"])
@pytest.mark.parametrize("is_known", [True, False])
def test_few_queries_to_come_in(service: HostileService, kind: str, is_known: bool) -> None:
    """The same limits hold for whoever is signed in by the code; a sign-up takes three more.

    They look for an account that the person disconnected, and take the address one at a time.
    """
    if is_known:
        make_identity(make_user("ada"))
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        before, statements = redeemed(service, Client(), kind=kind)
    ours = [sql for sql in statements if not is_djangos_login(sql)]
    assert before <= 10, statements
    assert len(ours) <= (15 if is_known else 18), ours


def is_djangos_login(sql: str) -> bool:
    return "django_session" in sql or (sql.startswith("UPDATE") and "last_login" in sql)
