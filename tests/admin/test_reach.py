"""How far operators who may only look can see: no sealed column, no address that is not theirs."""

from functools import partial

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from django_identity.gates import Gate, closed_to
from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from tests.admin.operators import (
    ADDRESS,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    RECEIPTS,
    every_page,
    make_everything,
    page,
    staff,
)
from tests.factories import make_identity, make_user

pytestmark = pytest.mark.django_db

VIEW = ("view_linkedidentity", "view_webhookevent", "view_erasurereceipt")
VERBS = ("refetch", "revoke", "erase")
MAY_DO = (*(f"{verb}_linkedidentity" for verb in VERBS), "replay_webhookevent")

# What a list must not be asked, with a value that would find the row.
SEALED = {
    IDENTITIES: {
        "subject_digest__startswith": "", "user__password__startswith": "",
        "user__email__startswith": "ada", "user__email": ADDRESS, "user__is_superuser": "0",
        "user_id": "1", "grant__refresh_token__startswith": "", "grant__access_token__gt": "",
        "grant__generation": "1", "claims__value": "true", "claims__proof_hash__startswith": "",
    },
    EVENTS: {
        "payload__contains": "a", "payload__user_id": "subject-1", "error__startswith": "",
        "event_digest__startswith": "", "subject_digest": "", "handled_by__contains": "",
    },
    RECEIPTS: {
        "subject__startswith": "subject", "subject_digest__startswith": "", "user__email": ADDRESS,
        "user": "1", "counts__contains": "", "error__startswith": "",
    },
}  # fmt: skip


@pytest.fixture(params=["ada", ADDRESS], ids=["a name", "an address"])
def identity(request: pytest.FixtureRequest) -> LinkedIdentity:
    """Of somebody whose user name may be their e-mail address."""
    return make_everything(request.param)


@pytest.mark.parametrize(
    ("name", "lookup", "value"),
    [(name, *asked) for name, lookups in SEALED.items() for asked in lookups.items()],
)
def test_a_list_filters_on_nothing_but_its_filters(name, lookup, value):
    """A lookup that finds or does not find spells out what is sealed, letter by letter."""
    assert staff(*VIEW).get(reverse(name), {lookup: value}).status_code == 400


@pytest.mark.parametrize(
    ("action", "model", "permission"),
    [
        *((verb, LinkedIdentity, f"{verb}_linkedidentity") for verb in VERBS),
        ("disconnect", LinkedIdentity, "revoke_linkedidentity"),
        ("replay", WebhookEvent, "replay_webhookevent"),
        ("try_now", ErasureReceipt, "erase_linkedidentity"),
    ],
)
def test_an_action_needs_its_own_permission(action, model, permission):
    """Every permission but this one is not enough, and the button is not shown."""
    make_everything()
    pk, name = model.objects.get().pk, f"admin:django_identity_{model._meta.model_name}"
    button, others = f'value="{action}"', {*MAY_DO} - {permission}
    assert button in page(staff(*VIEW, permission), f"{name}_change", pk)
    browser = staff(*VIEW, *others)
    assert button not in page(browser, f"{name}_change", pk)
    chosen = {"action": action, "_selected_action": pk, "confirmed": "yes"}
    browser.post(reverse(f"{name}_changelist"), chosen)
    assert not LogEntry.objects.exists()
    assert not LinkedIdentity.objects.exclude(consent="granted").exists()


def test_no_address_for_who_may_not_see_users(identity):
    """No page and no question shows it, though the operator may do everything else."""
    pages = list(every_page(staff(*VIEW, *MAY_DO)))
    assert not [text for text in pages if ADDRESS in text]
    shown = "ada" if identity.user.username == "ada" else f"user #{identity.user_id}"
    assert sum(f">{shown}<" in text for text in pages) == 5


@pytest.mark.parametrize("permission", ["view_user", "change_user"])
def test_the_address_for_who_may(identity, permission):
    """Whoever may see the site's users finds the person by it."""
    browser = staff(*VIEW, permission)
    assert ADDRESS in page(browser, IDENTITY, identity.pk)
    assert f">{identity.user.username}<" in page(browser, IDENTITIES, q="ADA@exam")


def test_a_reference_finds_the_person_for_who_may_see_users():
    """The number that the page of a closed gate tells somebody whose credential fails a check."""
    uche = make_user("uche")
    make_identity(uche, pk=4711, last_error="credential_rejected")
    told = closed_to(Gate("age_over_18"), uche).shortfall.reference
    found = partial(page, staff(*VIEW, "view_user"), IDENTITIES)
    assert ">uche<" in found(q=told)
    assert ">uche<" not in found(q=told[:-1])
    assert "user #" not in page(staff(*VIEW), IDENTITIES, q=told)


@pytest.mark.parametrize("wanted", ["ada@", ADDRESS, "ADA@EXAMPLE", "a", "agnes"])
def test_a_search_finds_nobody_for_who_may_not_see_users(wanted):
    """Found or not would be an answer; such an operator searches for subjects alone."""
    make_identity(make_user("bola", email=ADDRESS))
    make_identity(make_user(ADDRESS), subject="subject-2")
    make_identity(User.objects.create(username="agnes"), subject="subject-3")
    text = page(staff(*VIEW), IDENTITIES, q=wanted)
    assert not [name for name in (">bola<", ">agnes<", "user #") if name in text]
    assert ">agnes<" in page(staff(*VIEW), IDENTITIES, q="subject-3")
