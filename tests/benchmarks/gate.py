"""A view behind a claim gate, beside the same view behind Django's ``permission_required``.

The claim gate is asked in a session of the identity sign-in, the permission in a session of
Django's own. Both are cold: each request reads its session, its user and what the gate rests on
from the database. The ratio ``permission_required`` is of whole requests, middleware included;
``gate_alone`` leaves everything but the gate and the view out. The ratio ``session`` is of loading
the user alone: ``IdentityBackend.get_user`` beside ``ModelBackend.get_user``. Figures: microseconds
and queries.
"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext, setup_test_environment
from django.urls import path

from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.gates import claim_required
from tests.benchmarks.database import fresh_database
from tests.benchmarks.runner import Result, seconds_of
from tests.records import make_claim, make_identity, make_user

DJANGOS = "django.contrib.auth.backends.ModelBackend"
ROUNDS = 400
BATCH = 5


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


behind_a_claim = claim_required("age_over_18")(view)
behind_a_permission = permission_required("auth.view_user", raise_exception=True)(view)
urlpatterns = [path("claim/", behind_a_claim), path("permission/", behind_a_permission)]


def run() -> Result:
    setup_test_environment()
    with fresh_database(), override_settings(ROOT_URLCONF=__name__):
        person = make_person()
        whole = {
            "claim": request(person, "/claim/", backend=BACKEND_PATH),
            "permission": request(person, "/permission/", backend=DJANGOS),
        }
        alone = {
            "claim_alone": bare(person, behind_a_claim),
            "permission_alone": bare(person, behind_a_permission),
        }
        loading = {
            "identity_session": load(person, IdentityBackend()),
            "django_session": load(person, ModelBackend()),
        }
        seconds = seconds_of({**whole, **alone, **loading}, rounds=ROUNDS)
        queries = {f"{name}_queries": count(get) / BATCH for name, get in whole.items()}
    figures = {f"{name}_us": taken / BATCH * 1e6 for name, taken in seconds.items()}
    ratios = {
        "permission_required": seconds["permission"] / seconds["claim"],
        "gate_alone": seconds["permission_alone"] / seconds["claim_alone"],
        "session": seconds["django_session"] / seconds["identity_session"],
    }
    return Result("gate", ratios, {**figures, **queries})


def make_person() -> User:
    """Somebody for whom both gates are open."""
    person = make_user()
    person.user_permissions.add(Permission.objects.get(codename="view_user"))
    identity = make_identity(person)
    for claim_type in ("kyc_verified", "age_over_18", "country_resident", "unique_human"):
        make_claim(identity, claim_type)
    return person


def request(person: User, address: str, *, backend: str) -> Callable[[], None]:
    browser = Client()
    browser.force_login(User.objects.get(pk=person.pk), backend=backend)

    def get() -> None:
        for _ in range(BATCH):
            assert browser.get(address).content == b"in"

    return get


def bare(person: User, gated: Callable[[HttpRequest], HttpResponse]) -> Callable[[], None]:
    made = RequestFactory().get("/")

    def get() -> None:
        for _ in range(BATCH):
            made.user = User.objects.get(pk=person.pk)
            assert gated(made).content == b"in"

    return get


def load(person: User, backend: BaseBackend) -> Callable[[], None]:
    def get() -> None:
        for _ in range(BATCH):
            assert backend.get_user(person.pk) is not None

    return get


def count(get: Callable[[], None]) -> int:
    with CaptureQueriesContext(connection) as captured:
        get()
    return len(captured)
