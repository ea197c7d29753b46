"""The map claims no gate that the site's own code, or another method, goes around."""

from functools import partial, update_wrapper, wraps
from typing import Any

import pytest
from django import forms
from django.contrib.auth.decorators import login_not_required, user_passes_test
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils.decorators import decorator_from_middleware, method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import FormView
from rest_framework.response import Response

from django_identity.api.permissions import HasClaim
from django_identity.gates import ClaimRequiredMixin
from tests.gates.gated_views import Endpoint, Page, adult, view
from tests.instruments.conftest import listed
from tests.instruments.ways_to_gate import AdultsAlone, Lenient

ADULTS = method_decorator(adult)
GATED = adult(view)


def secret(*_asked: object, **_more: object) -> HttpResponse:
    return HttpResponse("secret")


def hasty(inner: Any) -> Any:
    """A decorator of the site: answers some requests itself."""

    @wraps(inner)
    def outer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return secret() if request.GET else inner(request, *args, **kwargs)

    return outer


def hasty_method(inner: Any) -> Any:
    @wraps(inner)
    def outer(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        return secret() if request.GET else inner(self, request, *args, **kwargs)

    return outer


def kind(base: type, **attributes: Any) -> Any:
    """A class of the site's own, with code of its own."""
    return type("Door", (base,), attributes)


def shown(base: type, **attributes: Any) -> Any:
    return kind(base, **attributes).as_view()


class Hasty:
    """An instance that says what it wraps, and answers some requests itself."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        update_wrapper(self, inner)

    def __call__(self, request: HttpRequest) -> Any:
        return secret() if request.GET else self.inner(request)


class HastyMiddleware:
    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def process_request(self, request: HttpRequest) -> Any:
        return secret() if request.GET else None

    def __call__(self, request: HttpRequest) -> Any:
        return self.process_request(request) or self.get_response(request)


class Preview(Page):
    """Answers some requests before a handler is called."""

    post = None  # type: ignore[assignment]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return secret() if request.GET else super().dispatch(request, *args, **kwargs)


class PreviewBeforeMixin(ClaimRequiredMixin, Page):
    """Its own answer stands below a gate of its own, and above the mixin's."""

    required_claims = ("country_resident=NG",)
    dispatch = ADULTS(hasty_method(ClaimRequiredMixin.dispatch))


class Shown(AdultsAlone):
    """Its own ``as_view`` answers some requests."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return hasty(super().as_view(**initkwargs))


class SetUp(AdultsAlone):
    """Its ``setup`` answers every request."""

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.dispatch = secret


def declared_to_the_map(self: Any, name: str) -> Any:
    return [] if hasattr(self, "request") else AdultsAlone.declared(self, name)


class AdultEndpoint(Endpoint):
    permission_classes = [HasClaim("age_over_18")]

    def finalized(self, request: Any, _: Any, *more: Any, **named: Any) -> Any:
        return super().finalize_response(request, Response("secret"), *more, **named)

    def opened(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.permission_classes = []
        return super().initialize_request(request, *args, **kwargs)


class Form(FormView):  # type: ignore[type-arg]
    """Django gives it a PUT, which is its POST; and its ``initial`` is a dict."""

    form_class = forms.Form
    initial = {"amount": 7}
    get = ADULTS(FormView.get)
    post = ADULTS(FormView.post)


def test_an_address_with_an_open_method_is_among_the_open(site):
    """Whoever reads the list of open addresses would take it for gated."""
    half = shown(Page, post=ADULTS(Page.post))
    site(path("door/", half), path("hall/", adult(view)))
    assert [line for line in listed("--open") if line.startswith("/")] == [
        "/door/; GET; open",
        "/door/; POST; age_over_18 (redirect)",
    ]


def test_a_form_is_not_open_by_the_put_that_is_its_post(site):
    site(path("door/", Form.as_view()))
    assert not [line for line in listed("--open") if line.startswith("/")]
    assert listed()[0] == "/door/; GET,POST,PUT; age_over_18 (redirect)"


NAMED = {
    "a dispatch": (
        shown(Preview, get=ADULTS(Page.get)),
        "GET; age_over_18 (redirect); Preview.dispatch()",
    ),
    "between two gates": (
        PreviewBeforeMixin.as_view(),
        "age_over_18 (redirect), country_resident=NG (redirect); PreviewBeforeMixin.dispatch()",
    ),
    "an initial": (
        shown(Endpoint, get=ADULTS(Endpoint.get), initial=lambda self, request: None),
        "GET; age_over_18 (redirect); Door.initial()",
    ),
    "what is denied": (
        shown(AdultEndpoint, permission_denied=lambda self, *_, **__: None),
        "age_over_18 (forbid); Door.permission_denied()",
    ),
    "get_permissions": (
        shown(Endpoint, get_permissions=lambda self: [HasClaim("age_over_18")()]),
        "? (forbid); Door.get_permissions()",
    ),
    "a permission": (
        shown(Endpoint, permission_classes=[Lenient]),
        "age_over_18 (forbid); Lenient.has_permission()",
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_own_code_that_may_answer_before_a_gate_is_named(site, name):
    door, asked = NAMED[name]
    site(path("door/", door))
    assert listed()[0].endswith(f"; {asked}")


HASTY_CLASS = method_decorator(hasty, name="dispatch")
#: Views that the map would call closed, and that show themselves to nobody in particular.
OPEN_ALL_THE_SAME = {
    "a decorator above the gate": (hasty(GATED), "hasty()"),
    "below those of a framework": (
        never_cache(csrf_exempt(hasty(csrf_exempt(GATED)))),
        "hasty()",
    ),
    "above a class": (hasty(AdultsAlone.as_view()), "hasty()"),
    "an instance that wraps": (Hasty(GATED), "Hasty()"),
    "a middleware as a decorator": (
        decorator_from_middleware(HastyMiddleware)(GATED),
        "HastyMiddleware()",
    ),
    "a partial of a decorator": (
        method_decorator(partial(hasty), name="dispatch")(kind(AdultsAlone)).as_view(),
        "Door.dispatch()",
    ),
    "something else is wrapped": (wraps(GATED)(secret), "secret()"),
    "a framework's wrapper of something else": (
        update_wrapper(csrf_exempt(secret), GATED),
        "csrf_exempt.__wrapped__",
    ),
    "as_view": (Shown.as_view(), "hasty(), Shown.as_view()"),
    "guarded": (
        shown(AdultsAlone, guarded=lambda self, view, name: view),
        "Door.guarded()",
    ),
    "declared": (
        shown(AdultsAlone, declared=declared_to_the_map),
        "Door.declared()",
    ),
    "a dispatch that is wrapped": (
        shown(AdultsAlone, dispatch=hasty_method(AdultsAlone.dispatch)),
        "Door.dispatch()",
    ),
    "setup": (
        SetUp.as_view(),
        "SetUp.setup()",
    ),
    "a decorated dispatch": (
        HASTY_CLASS(kind(AdultsAlone)).as_view(),
        "Door.dispatch()",
    ),
    "one of two decorators": (
        method_decorator([never_cache, hasty], name="dispatch")(
            kind(AdultsAlone),
        ).as_view(),
        "Door.dispatch()",
    ),
    "initialize_request": (
        shown(AdultEndpoint, initialize_request=AdultEndpoint.opened),
        "Door.initialize_request()",
    ),
    "handle_exception": (
        shown(AdultEndpoint, handle_exception=lambda self, exc: Response("secret")),
        "Door.handle_exception()",
    ),
    "finalize_response": (
        shown(AdultEndpoint, finalize_response=AdultEndpoint.finalized),
        "Door.finalize_response()",
    ),
    "check_permissions": (
        shown(AdultEndpoint, check_permissions=lambda self, request: None),
        "Door.check_permissions()",
    ),
    "a decorated handler": (
        shown(Page, get=hasty_method(ADULTS(Page.get))),
        "hasty_method()",
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", OPEN_ALL_THE_SAME)
def test_a_gate_that_own_code_goes_around_is_said_to_be_decided_by_it(site, name):
    """Nobody is signed in, and the page is shown."""
    door, own_code = OPEN_ALL_THE_SAME[name]
    site(path("door/", door))
    answer = Client().get("/door/", {"preview": "1"})
    assert answer.status_code == 200
    assert b"secret" in answer.content
    line = listed()[0].split("; ")
    assert "age_over_18" in line[2]
    assert line[3:] == [own_code]


NO_CODE_OF_ITS_OWN = {
    "a gate": GATED,
    "below wrappers of Django": never_cache(csrf_exempt(login_not_required(GATED))),
    "in a transaction": transaction.atomic(GATED),
    "partial": partial(GATED),
    "above a decorator of the site": adult(hasty(view)),
    "a class": AdultsAlone.as_view(),
    "a decorated class": method_decorator(never_cache, name="dispatch")(
        kind(AdultsAlone),
    ).as_view(),
    "around a class with a dispatch": adult(Preview.as_view()),
    "a dispatch below the gate": type(
        "Door",
        (ClaimRequiredMixin, Preview),
        {
            "required_claims": ("age_over_18",),
        },
    ).as_view(),
    "a test of Django's": user_passes_test(bool)(GATED),
    "an endpoint": AdultEndpoint.as_view(),
}


@pytest.mark.parametrize("name", NO_CODE_OF_ITS_OWN)
def test_a_gate_that_is_asked_first_stands_by_itself(site, name):
    """Else the column would be full, and nobody would read it."""
    site(path("door/", NO_CODE_OF_ITS_OWN[name]))
    assert listed()[0].split("; ")[3:] == []
