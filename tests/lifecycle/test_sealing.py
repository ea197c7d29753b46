"""Key rotation: every token moves under the first key, and no newer one is lost."""

import io
import pickle
from functools import partial

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.forms.models import model_to_dict
from django.test import override_settings
from django.utils import timezone

from django_identity import conf, vault
from django_identity.lifecycle.ground import sealing
from django_identity.lifecycle.operators import rotation
from django_identity.lifecycle.operators.rotation import Rotated
from django_identity.lifecycle.said import grants
from django_identity.models import AuthorizationRequest, LinkedIdentity, TokenGrant
from django_identity.secrets import Secret
from django_identity.service.answers import TokenAnswer
from tests.factories import change_each, make_identity, make_user
from tests.lifecycle.broken_statements import refused
from tests.lifecycle.grants import announced
from tests.settings import DJANGO_IDENTITY

pytestmark = pytest.mark.django_db

OLD, NEW = "the older key of the ring", "the newer key of the ring"
SECRETS = ("at-of-ada", "rt-of-ada", "verifier-of-ada")


def ring(*keys):
    setting = {**DJANGO_IDENTITY, "ENCRYPTION_KEYS": list(keys)}
    return override_settings(DJANGO_IDENTITY=setting)


def answer(access, refresh=None):
    pair = Secret(access), None if refresh is None else Secret(refresh)
    return TokenAnswer(*pair, 3600.0, ("profile:read",), None)


def make_sealed(person="ada"):
    """An identity with tokens and a started sign-in, under the first key."""
    identity = make_identity(make_user(person), subject=f"subject-{person}")
    grants.store(identity, answer(f"at-of-{person}", f"rt-of-{person}"))
    started = AuthorizationRequest(
        environment="test",
        state_digest=person,
        expires_at=timezone.now(),
    )
    keys = conf.application().encryption_keys
    context = started.sealing_context("code_verifier")
    started.code_verifier = vault.seal(
        Secret(f"verifier-of-{person}"),
        keys=keys,
        context=context,
    )
    started.save()
    return identity


def all_opened():
    return sorted(
        sealing.unseal(row.identity, row, name).reveal()
        for row in TokenGrant.objects.all()
        for name in rotation.SEALED
    )


def rotate(**options):
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


def test_a_new_sealed_column_is_rotated_too():
    """What a grant keeps as text without an end is sealed."""
    fields = TokenGrant._meta.concrete_fields
    texts = [field.name for field in fields if field.get_internal_type() == "TextField"]
    assert tuple(texts) == rotation.SEALED


def test_everything_moves_under_the_first_key():
    """Afterwards the older key may go, and everything opens as before. A dead grant is left."""
    with ring(OLD):
        make_sealed("ada")
        make_sealed("bob")
        before = all_opened()
        dead = TokenGrant.objects.filter(identity=make_sealed("eve"))
    dead.update(access_token="", refresh_token="", needs_reauthorization=True)
    with ring(NEW, OLD):
        assert rotate() == "2 grant(s) re-encrypted\n"
    dead.delete()
    with ring(NEW):
        assert all_opened() == before


def test_it_can_be_stopped_anywhere_and_run_again(monkeypatch):
    """Each batch is committed, and an end in the middle of one takes its writes back together.

    What was done is said, without a traceback.
    """
    with ring(OLD):
        for person in ("ada", "bob", "eve", "dan"):
            make_sealed(person)
        before = all_opened()
    monkeypatch.setattr(rotation, "rotate_keys", partial(rotation.rotate_keys, size=2))
    out = io.StringIO()
    with ring(NEW, OLD):
        stopped = pytest.raises(CommandError, match="Run it again")
        interrupted = refused("UPDATE", error=KeyboardInterrupt, after=3)
        with interrupted, stopped as caught:
            call_command("identity_rotate_keys", stdout=out)
        assert caught.value.returncode == 130
        assert "2 grant(s) re-encrypted" in out.getvalue()
        assert all_opened() == before
    with ring(OLD):
        assert "2 grant(s) re-encrypted" in rotate()
    with ring(NEW, OLD):
        assert "4 grant(s) re-encrypted" in rotate()
    with ring(NEW):
        assert all_opened() == before


def test_a_refresh_meanwhile_wins():
    """Tokens that are stored between reading and writing a row are not overwritten."""
    with ring(OLD):
        identity = make_sealed()
    stored = []

    def refresh_first(execute, sql, *rest):
        if not stored and sql.startswith("UPDATE") and "_tokengrant" in sql:
            stored.append(True)
            grants.store(identity, answer("at-newer", "rt-newer"))
        return execute(sql, *rest)

    with ring(NEW, OLD):
        with connection.execute_wrapper(refresh_first):
            (fates,) = rotation.rotate_keys()
        assert fates == {Rotated.OVERTAKEN: 1}
    with ring(NEW):
        assert all_opened() == ["at-newer", "rt-newer"]


@pytest.mark.django_db(transaction=True)
def test_only_an_operators_word_ends_what_no_key_opens():
    """``--forget-unreadable``: those people have to sign in again, and nobody else.

    The site hears of each, and the level and the due date go, as with any grant that is lost.
    """
    with ring("a key that somebody lost"):
        lost = make_sealed("ada")
    with ring(OLD):
        make_sealed("bob")
    now = timezone.now()
    LinkedIdentity.objects.update(
        refetch_due_at=now,
        refetch_failures=7,
        last_error="x",
    )
    with ring(NEW, OLD), announced() as heard:
        out = rotate(forget_unreadable=True, yes=True)
    assert (
        out
        == "1 grant(s) re-encrypted\n1 grant(s) ended: the person has to sign in again\n"
    )
    assert [identity.pk for identity in heard] == [lost.pk]
    lost.refresh_from_db()
    assert lost.grant.needs_reauthorization
    assert lost.grant.access_token == ""
    assert lost.grant.refresh_token == ""
    assert lost.kyc_level == ""
    assert lost.refetch_due_at is None
    assert lost.refetch_failures == 0
    kept = TokenGrant.objects.exclude(identity=lost).get()
    assert kept.needs_reauthorization is False
    assert kept.identity.refetch_due_at == now
    with ring(NEW, OLD):
        assert rotate(forget_unreadable=True, yes=True) == "1 grant(s) re-encrypted\n"


def test_a_hand_that_slips_ends_nobodys_grant(monkeypatch):
    """The operator has to type it. And whose keys the settings do not have is left alone."""
    with ring(OLD):
        make_sealed()
    monkeypatch.setattr("builtins.input", lambda _question: "yes")
    with ring(NEW), pytest.raises(CommandError, match="Nothing was done"):
        call_command("identity_rotate_keys", "--forget-unreadable")

    change_each(environment="live")
    out = io.StringIO()
    with ring(NEW, OLD), pytest.raises(CommandError, match="settings do not have"):
        call_command(
            "identity_rotate_keys",
            forget_unreadable=True,
            yes=True,
            stdout=out,
        )
    assert "1 grant(s) of the other environment" in out.getvalue()
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()


@pytest.mark.parametrize("stored", ["", "plain text"])
def test_an_access_token_alone_ends_nothing(stored):
    """It is replaced within the hour, by a refresh token that opens."""
    with ring(OLD):
        identity = make_sealed()
    TokenGrant.objects.update(access_token=stored)
    with ring(NEW, OLD):
        assert rotate(forget_unreadable=True, yes=True) == "1 grant(s) re-encrypted\n"
    with ring(NEW):
        grant = TokenGrant.objects.get()
        kept = sealing.unseal(identity, grant, "refresh_token")
        assert kept.reveal() == "rt-of-ada"
    assert grant.access_token == stored


def test_what_no_key_opens_is_counted_and_left():
    """Damaged, of another row, or by a missing key: put that back, and the grant opens again."""
    with ring("a key that somebody lost"):
        make_sealed("eve")
    with ring(OLD):
        make_sealed("ada")
        for number, stored in enumerate(("plain text", "gAAAAA", "\U0001f642")):
            damaged = make_sealed(f"damaged-{number}")
            TokenGrant.objects.filter(identity=damaged).update(refresh_token=stored)
        moved = make_sealed("moved")
        moved.subject = "somebody else"
        moved.save(update_fields=["subject"])
    with ring(NEW, OLD):
        out = rotate()
    assert "1 grant(s) re-encrypted" in out
    assert "5 grant(s) opened by no key" in out
    with ring(NEW, "a key that somebody lost"):
        assert "2 grant(s) re-encrypted" in rotate()


# Nothing decrypted shows anywhere


def test_records_show_nothing_of_what_they_hold():
    """Neither printed, pickled nor turned into a dict."""
    make_sealed()
    for row in (TokenGrant.objects.get(), AuthorizationRequest.objects.get()):
        shown = f"{row!r} {row} {model_to_dict(row)} {vars(row)}".encode()
        shown += pickle.dumps(row)
        assert not any(secret.encode() in shown for secret in SECRETS)


def test_rotation_and_its_failures_log_nothing_of_it(caplog):
    """Not even at DEBUG, SQL included."""
    with ring(OLD):
        make_sealed()
    with caplog.at_level(0), ring(NEW, OLD), override_settings(DEBUG=True):
        rotate()
    with caplog.at_level(0), ring("a key of nobody at all"):
        rotate()
    assert not any(secret in caplog.text for secret in (*SECRETS, OLD, NEW))
