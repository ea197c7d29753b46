"""A view behind a claim gate, beside the same view behind Django's ``permission_required``.

The claim gate is asked in a session of the identity sign-in, the permission in a session of
Django's own, in whole requests that read session, user and gate from the database. ``session`` is
of loading the user by itself, and again between the whole requests, which empty the processor's
caches. A ratio is our rate divided by Django's.
"""

from collections.abc import Callable
from functools import partial

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from benchmarks.harness import Figures, fresh_database, seconds_of, statements_of
from django_identity.backends import BACKEND_PATH, IdentityBackend
from django_identity.gates import claim_required
from tests.factories import make_claim, make_identity, make_user

DJANGOS = "django.contrib.auth.backends.ModelBackend"
ROUNDS = 2000


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    path("claim/", claim_required("age_over_18")(view)),
    path(
        "permission/",
        permission_required("auth.view_user", raise_exception=True)(view),
    ),
]


def run() -> Figures:
    with fresh_database(postgresql=False), override_settings(ROOT_URLCONF=__name__):
        person = make_person()
        requests = {
            "claim": request(person, "/claim/", BACKEND_PATH),
            "permission": request(person, "/permission/", DJANGOS),
        }
        loading = {
            "identity_session": partial(IdentityBackend().get_user, person.pk),
            "django_session": partial(ModelBackend().get_user, person.pk),
        }
        alone = seconds_of(loading, rounds=ROUNDS)
        taken = seconds_of({**requests, **loading}, rounds=ROUNDS)
        queries = {
            f"{name}_queries": statements_of(get) for name, get in requests.items()
        }
    return {
        "ratio_permission_required": taken["permission"] / taken["claim"],
        "ratio_session": alone["django_session"] / alone["identity_session"],
        "ratio_session_between_requests": taken["django_session"]
        / taken["identity_session"],
        **{f"{name}_us": each * 1e6 for name, each in taken.items()},
        **queries,
    }


def make_person() -> User:
    """Somebody for whom both gates are open."""
    person = make_user()
    person.user_permissions.add(Permission.objects.get(codename="view_user"))
    identity = make_identity(person)
    for claim_type in (
        "kyc_verified",
        "age_over_18",
        "country_resident",
        "unique_human",
    ):
        make_claim(identity, claim_type)
    return person


def request(person: User, address: str, backend: str) -> Callable[[], None]:
    browser = Client()
    browser.force_login(person, backend=backend)

    def get() -> None:
        assert browser.get(address).content == b"in"

    return get
