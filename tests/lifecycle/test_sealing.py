"""Key rotation: every sealed value moves under the first key, and no newer one is lost."""

from __future__ import annotations

import io
import pickle
import signal
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.db import connection
from django.forms.models import model_to_dict
from django.test import RequestFactory, override_settings
from django.utils import timezone

from django_identity import conf, vault
from django_identity.exceptions import SealedValueUnreadable
from django_identity.lifecycle.arrival import authorization_requests
from django_identity.lifecycle.upkeep import sealing, tokens
from django_identity.models import AuthorizationRequest, LinkedIdentity, Purpose, TokenGrant
from django_identity.service.answers import TokenAnswer
from django_identity.service.authorization import PkcePair
from tests.records import make_identity, make_user
from tests.settings import DJANGO_IDENTITY

pytestmark = pytest.mark.django_db

OLD, NEW = "the older key of the ring", "the newer key of the ring"
SECRETS = ("at-of-ada", "rt-of-ada", "credential-of-ada", "verifier-of-ada")


def ring(*keys: str) -> override_settings:
    setting = {**DJANGO_IDENTITY["default"], "ENCRYPTION_KEYS": list(keys)}
    return override_settings(DJANGO_IDENTITY={"default": setting})


def answer(access: str, refresh: str | None = None) -> TokenAnswer:
    return TokenAnswer(access, refresh, 3600.0, ("profile:read",), None)


def make_sealed(person: str = "ada") -> LinkedIdentity:
    """An identity with a value in every sealed column, under the first key."""
    site = conf.application()
    identity = make_identity(make_user(person), subject=f"subject-{person}")
    identity.credential = vault.seal(
        f"credential-of-{person}",
        keys=site.encryption_keys,
        context=identity.sealing_context("credential"),
    )
    identity.save()
    tokens.store(site, identity, answer(f"at-of-{person}", f"rt-of-{person}"))
    journey = authorization_requests.SignInIntent(
        purpose=Purpose.SIGN_IN, user=None, next_url="/", redirect_uri="http://127.0.0.1/"
    )
    pkce = PkcePair(f"verifier-of-{person}", "challenge")
    authorization_requests.start(
        site, journey, state=f"state-{person}", browser_key="key", pkce=pkce
    )
    return identity


def opened(column: sealing.SealedColumn, row: Any) -> str:
    keys = conf.application().encryption_keys
    return vault.unseal(
        getattr(row, column.name), keys=keys, context=row.sealing_context(column.name)
    )


def all_opened() -> list[str]:
    return sorted(opened(column, row) for column in sealing.COLUMNS for row in column.held())


def rotate(**options: Any) -> str:
    """What the command says. It exits with 1 if, and only if, a value is opened by no key."""
    out, failed = io.StringIO(), False
    try:
        call_command("identity_rotate_keys", stdout=out, stderr=out, **options)
    except CommandError as error:
        failed = "opened by no key" in str(error)
        if not failed:
            raise
    assert failed is ("opened by no key" in out.getvalue())
    return out.getvalue()


def test_every_sealed_column_is_listed() -> None:
    """Whatever says that it is sealed is rotated: a new column cannot be forgotten."""
    said = {
        (model, field.name)
        for model in apps.get_app_config("django_identity").get_models()
        for field in model._meta.get_fields()
        if not model._meta.proxy and "Sealed" in str(getattr(field, "help_text", ""))
    }
    assert said == {(column.model, column.name) for column in sealing.COLUMNS}


def test_everything_moves_under_the_first_key() -> None:
    """Afterwards the older key may go, and everything opens as before."""
    with ring(OLD):
        make_sealed("ada")
        make_sealed("bob")
        before = all_opened()
    with ring(NEW, OLD):
        assert sealing.count_outdated() == 8
        assert "TokenGrant.refresh_token: 2 re-encrypted" in rotate(batch=1)
        assert sealing.count_outdated() == 0
    with ring(NEW):
        assert all_opened() == before


def test_a_second_run_has_nothing_to_do() -> None:
    """What is under the first key already is not even read."""
    with ring(OLD):
        make_sealed()
    with ring(NEW, OLD):
        rotate()
        assert list(sealing.rotate_keys()) == []


def test_it_can_be_stopped_after_any_batch_and_resumed() -> None:
    """Each batch is committed; the rest is found by itself."""
    with ring(OLD):
        for person in ("ada", "bob", "eve"):
            make_sealed(person)
    with ring(NEW, OLD):
        for _ in range(5):
            work = sealing.rotate_keys(size=1)
            next(work)
            work.close()
        assert sealing.count_outdated() == 12 - 5
        rotate()
        assert sealing.count_outdated() == 0


class Watched(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Interrupting(io.StringIO):
    """A terminal whose person presses Ctrl-C when the bar appears."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "| 1/" in text and "| 1/" not in self.getvalue():
            super().write(text)
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_it_with_a_sentence() -> None:
    """No traceback, what was done is said, and running it again goes on."""
    with ring(OLD):
        for person in ("ada", "bob"):
            make_sealed(person)
    with ring(NEW, OLD):
        out, err = io.StringIO(), Interrupting()
        with pytest.raises(CommandError, match="Run it again") as caught:
            call_command("identity_rotate_keys", batch=1, stdout=out, stderr=err)
        assert caught.value.returncode == 130
        assert "LinkedIdentity.credential: 1 re-encrypted" in out.getvalue()
        assert sealing.count_outdated() == 7
        rotate()
        assert sealing.count_outdated() == 0


@pytest.mark.parametrize("moment", [2, 3])
def test_an_end_in_the_middle_of_a_batch_loses_nothing(moment: int) -> None:
    """Its writes are taken back together; every value still opens, and the next run does all."""
    with ring(OLD):
        for person in ("ada", "bob", "eve"):
            make_sealed(person)
        before = all_opened()
    writes: list[str] = []

    def interrupted(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE"):
            writes.append(sql)
            if len(writes) == moment:
                raise KeyboardInterrupt
        return execute(sql, *rest)

    with ring(NEW, OLD):
        with connection.execute_wrapper(interrupted), pytest.raises(CommandError):
            rotate()
        assert sealing.count_outdated() == 12
        assert all_opened() == before
        rotate()
        assert sealing.count_outdated() == 0
        assert all_opened() == before


def test_a_refresh_meanwhile_wins() -> None:
    """A token that is stored between reading and writing a row is not overwritten."""
    with ring(OLD):
        identity = make_sealed()
    stored = []

    def refresh_first(execute: Any, sql: str, *rest: Any) -> Any:
        if not stored and sql.startswith("UPDATE") and "_tokengrant" in sql:
            stored.append(True)
            tokens.store(conf.application(), identity, answer("at-newer", "rt-newer"))
        return execute(sql, *rest)

    with ring(NEW, OLD):
        with connection.execute_wrapper(refresh_first):
            batches = list(sealing.rotate_keys())
        assert sum(batch.overtaken for batch in batches) == 1
        assert {"at-newer", "rt-newer"} <= set(all_opened())
        assert sealing.count_outdated() == 0


def test_a_value_that_no_key_opens_is_reported_and_left_alone() -> None:
    """The key may only be missing from the ring: put it back, and everything opens again."""
    with ring("a key that somebody lost"):
        make_sealed("ada")
    with ring(OLD):
        make_sealed("bob")
    with ring(NEW, OLD):
        out = rotate()
        assert "TokenGrant.access_token: 1 opened by no key" in out
        assert "TokenGrant.access_token: 1 re-encrypted" in out
        assert sealing.count_outdated() == 4
        assert [sealing.find_unreadable(column).count() for column in sealing.COLUMNS] == [1] * 4
    with ring(NEW, "a key that somebody lost"):
        rotate()
        assert sealing.count_outdated() == 0
        assert [sealing.find_unreadable(column).count() for column in sealing.COLUMNS] == [0] * 4


@pytest.mark.parametrize("stored", ["plain text", "v1", "v1..", "v1.00000000.AAAA", "\U0001f642"])
def test_what_was_never_sealed_stops_nothing(stored: str) -> None:
    """A damaged row is counted; the rows around it are rotated."""
    with ring(OLD):
        make_sealed("ada")
        damaged = make_sealed("bob")
    TokenGrant.objects.filter(identity=damaged).update(refresh_token=stored)
    with ring(NEW, OLD):
        assert "TokenGrant.refresh_token: 1 opened by no key" in rotate()
        assert sealing.count_outdated() == 1


def test_a_value_of_another_row_does_not_open() -> None:
    """Moved between persons, a sealed token is as good as lost."""
    with ring(OLD):
        ada, bob = make_sealed("ada"), make_sealed("bob")
    moved = TokenGrant.objects.get(identity=ada).refresh_token
    TokenGrant.objects.filter(identity=bob).update(refresh_token=moved)
    with ring(NEW, OLD):
        assert "TokenGrant.refresh_token: 1 opened by no key" in rotate()


def test_rows_of_a_removed_application_are_found() -> None:
    """Nothing can open them any more; they are reported, not skipped in silence."""
    with ring(OLD):
        make_sealed()
        LinkedIdentity.objects.update(application="gone")
        assert sealing.count_outdated() == 0
        found = {column.name: sealing.find_unreadable(column).count() for column in sealing.COLUMNS}
    assert found == {
        "credential": 1, "access_token": 1, "refresh_token": 1, "code_verifier": 0,
    }  # fmt: skip


def test_each_application_has_its_own_ring() -> None:
    """What stands under another application's key is not looked at with this one's."""
    both = {
        alias: {**DJANGO_IDENTITY["default"], "ENCRYPTION_KEYS": [key]}
        for alias, key in (("default", OLD), ("other", NEW))
    }
    with ring(OLD):
        make_sealed("ada")
    with override_settings(DJANGO_IDENTITY=both):
        assert sealing.count_outdated() == 0
        assert [sealing.find_unreadable(column).count() for column in sealing.COLUMNS] == [0] * 4
        LinkedIdentity.objects.update(application="other")
        AuthorizationRequest.objects.update(application="other")
        assert [sealing.find_unreadable(column).count() for column in sealing.COLUMNS] == [1] * 4
        assert "LinkedIdentity.credential: 1 opened by no key" in rotate()


def test_a_batch_costs_one_query_and_its_writes(django_assert_num_queries: Any) -> None:
    """Whatever the rows' contexts need comes with them; a batch is no larger than it may be."""
    with ring(OLD):
        for person in ("ada", "bob", "eve"):
            make_sealed(person)
    with ring(NEW, OLD):
        for done_before, column in enumerate(sealing.COLUMNS):
            batches = sealing.rotate_keys(size=2)
            # One to read, two to write, two for the transaction; one for each column that is done.
            with django_assert_num_queries(5 + done_before):
                done = next(batches)
            assert (done.column, done.resealed) == (column.label, 2)
            batches.close()
            assert next(sealing.rotate_keys(size=3)).resealed == 1


def test_the_bar_counts_values() -> None:
    """It is full when all is done, however large a batch is."""
    with ring(OLD):
        for person in ("ada", "bob"):
            make_sealed(person)
    with ring(NEW, OLD):
        terminal = Watched()
        call_command("identity_rotate_keys", stdout=io.StringIO(), stderr=terminal)
    assert "100%|##########| 8/8" in terminal.getvalue()


def test_settings_that_cannot_be_used_are_a_sentence() -> None:
    """No traceback of the command."""
    with override_settings(DJANGO_IDENTITY={"default": {}}), pytest.raises(CommandError):
        rotate()


def test_a_batch_is_at_least_one_row() -> None:
    """A sentence, not an endless loop."""
    with pytest.raises(CommandError, match="at least 1"):
        rotate(batch=0)


# Nothing decrypted shows anywhere


def holders() -> list[Any]:
    return [row for column in sealing.COLUMNS for row in column.held()]


def test_records_show_nothing_of_what_they_hold() -> None:
    """Neither printed, pickled nor turned into a dict."""
    make_sealed()
    for row in holders():
        shown = f"{row!r} {row} {model_to_dict(row)} {vars(row)}".encode() + pickle.dumps(row)
        assert not any(secret.encode() in shown for secret in SECRETS)


def test_rotation_and_its_failures_log_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    """Not even at DEBUG, SQL included."""
    with ring(OLD):
        make_sealed()
    with caplog.at_level(0), ring(NEW, OLD), override_settings(DEBUG=True):
        rotate()
    with caplog.at_level(0), ring("a key of nobody at all"):
        rotate()
    assert not any(secret in caplog.text for secret in (*SECRETS, OLD, NEW))


def test_a_traceback_shows_neither_keys_nor_text() -> None:
    """With every frame's variables, as error trackers collect them."""
    with ring(OLD):
        make_sealed()
    with ring("a key of nobody at all"):
        column, row = sealing.COLUMNS[0], LinkedIdentity.objects.get()
        with pytest.raises(SealedValueUnreadable) as caught:
            vault.unseal(
                row.credential,
                keys=conf.application().encryption_keys,
                context=row.sealing_context(column.name),
            )
    frame = caught.tb.tb_next
    shown = ""
    while frame is not None:
        shown += repr(frame.tb_frame.f_locals)
        frame = frame.tb_next
    assert "vault" in str(caught.traceback[-1].path)
    assert not any(secret in shown for secret in (*SECRETS, "a key of nobody at all"))


@pytest.mark.parametrize("column", sealing.COLUMNS, ids=lambda column: column.label)
def test_no_admin_page_has_a_sealed_column(column: sealing.SealedColumn) -> None:
    """Not even its sealed text is of use to anybody there."""
    shown = admin.site._registry.get(column.model)
    request = RequestFactory().get("/")
    request.user = make_user(is_superuser=True, is_staff=True)
    names = [] if shown is None else [*shown.get_fields(request), *shown.get_list_display(request)]
    assert column.name not in names


def test_an_expired_request_is_rotated_too() -> None:
    """Until it is swept it is held like any other."""
    with ring(OLD):
        make_sealed()
    AuthorizationRequest.objects.update(expires_at=timezone.now() - timedelta(days=1))
    with ring(NEW, OLD):
        rotate()
        assert sealing.count_outdated() == 0
