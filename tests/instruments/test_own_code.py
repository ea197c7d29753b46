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
from tests.instruments.ways_to_gate import AdultsAlone as Adult
from tests.instruments.ways_to_gate import Lenient

ADULTS = method_decorator(adult)


class PostAlone(Page):
    """A gate before one of two methods."""

    @ADULTS
    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("secret")


class Form(FormView):  # type: ignore[type-arg]
    """Django gives it a PUT, which is its POST; and its ``initial`` is a dict."""

    form_class = forms.Form
    initial = {"amount": 7}
    get = ADULTS(FormView.get)
    post = ADULTS(FormView.post)


class Preview(Page):
    """Answers some requests before a handler is called."""

    get = ADULTS(Page.get)
    post = None  # type: ignore[assignment]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return super().dispatch(request, *args, **kwargs)


class PreviewBeforeMixin(ClaimRequiredMixin, Page):
    """Its own answer stands below a gate of its own, and above the mixin's."""

    required_claims = ("country_resident=NG",)

    @ADULTS
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return super().dispatch(request, *args, **kwargs)


@method_decorator(never_cache, name="dispatch")
class DecoratedMixin(ClaimRequiredMixin, Page):
    """It has no code of its own before the gate."""

    required_claims = ("age_over_18",)


class Hurried(Endpoint):
    """An endpoint whose own code runs before its handler."""

    get = ADULTS(Endpoint.get)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        pass


class Chosen(Endpoint):
    def get_permissions(self) -> list[Any]:
        return [HasClaim("age_over_18")()]


class LenientEndpoint(Endpoint):
    permission_classes = [Lenient]


class Reporting(Endpoint):
    """It only notes what would be denied."""

    permission_classes = [HasClaim("age_over_18")]

    def permission_denied(self, request: Any, *_why: Any, **_more: Any) -> None:
        pass


def test_an_address_with_an_open_method_is_among_the_open(site):
    """Whoever reads the list of open addresses would take it for gated."""
    site(path("door/", PostAlone.as_view()), path("hall/", adult(view)))
    assert [line for line in listed("--open") if line.startswith("/")] == [
        "/door/; GET; open",
        "/door/; POST; age_over_18 (redirect)",
    ]


def test_a_form_is_not_open_by_the_put_that_is_its_post(site):
    site(path("door/", Form.as_view()))
    assert not [line for line in listed("--open") if line.startswith("/")]
    assert listed()[0] == "/door/; GET,POST,PUT; age_over_18 (redirect)"


@pytest.mark.parametrize(
    ("door", "asked"),
    [
        (Preview, "GET; age_over_18 (redirect); Preview.dispatch()"),
        (
            PreviewBeforeMixin,
            "age_over_18 (redirect), country_resident=NG (redirect); "
            "PreviewBeforeMixin.dispatch()",
        ),
        (DecoratedMixin, "age_over_18 (redirect)"),
        (Hurried, "GET; age_over_18 (redirect); Hurried.initial()"),
        (Reporting, "age_over_18 (forbid); Reporting.permission_denied()"),
        (Chosen, "? (forbid); Chosen.get_permissions()"),
        (LenientEndpoint, "age_over_18 (forbid); Lenient.has_permission()"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_own_code_that_may_answer_before_a_gate_is_named(site, door, asked):
    site(path("door/", door.as_view()))
    assert listed()[0].endswith(f"; {asked}")


# Views that the map would call closed, and that show themselves to nobody in particular


def hasty(inner: Any) -> Any:
    """A decorator of the site: answers some requests itself."""

    @wraps(inner)
    def outer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return inner(request, *args, **kwargs)

    return outer


def hasty_method(inner: Any) -> Any:
    @wraps(inner)
    def outer(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return inner(self, request, *args, **kwargs)

    return outer


class Hasty:
    """An instance that says what it wraps, and answers some requests itself."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        update_wrapper(self, inner)

    def __call__(self, request: HttpRequest) -> Any:
        return HttpResponse("secret") if request.GET else self.inner(request)


class HastyMiddleware:
    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def process_request(self, request: HttpRequest) -> Any:
        return HttpResponse("secret") if request.GET else None

    def __call__(self, request: HttpRequest) -> Any:
        return self.process_request(request) or self.get_response(request)


class Shown(Adult):
    """Its own ``as_view`` answers some requests."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return hasty(super().as_view(**initkwargs))


class Unguarded(Adult):
    def guarded(self, view: Any, name: str) -> Any:
        return view if "preview" in self.request.GET else super().guarded(view, name)


class AsksNobody(Adult):
    def declared(self, name: str) -> Any:
        request = getattr(self, "request", None)
        return [] if request and "preview" in request.GET else super().declared(name)


class Wrapped(Adult):
    dispatch = hasty_method(Adult.dispatch)


@method_decorator(hasty, name="dispatch")
class Decorated(Adult):
    pass


@method_decorator([never_cache, hasty], name="dispatch")
class DecoratedTwice(Adult):
    pass


class AdultEndpoint(Endpoint):
    permission_classes = [HasClaim("age_over_18")]


class Forgiving(AdultEndpoint):
    def handle_exception(self, exc: Exception) -> Any:
        return Response("secret")


class Rewriting(AdultEndpoint):
    def finalize_response(self, request: Any, response: Any, *a: Any, **k: Any) -> Any:
        return super().finalize_response(request, Response("secret"), *a, **k)


class Unchecked(AdultEndpoint):
    def check_permissions(self, request: Any) -> None:
        pass


class BelowHandler(Page):
    get = hasty_method(ADULTS(Page.get))


def answers_itself(request: HttpRequest) -> HttpResponse:
    return HttpResponse("secret")


GATED = adult(view)
OPEN_ALL_THE_SAME = {
    "a decorator above the gate": (hasty(GATED), "hasty()"),
    "below those of a framework": (
        never_cache(csrf_exempt(hasty(csrf_exempt(GATED)))),
        "hasty()",
    ),
    "above a class": (hasty(Adult.as_view()), "hasty()"),
    "an instance that wraps": (Hasty(GATED), "Hasty()"),
    "a middleware as a decorator": (
        decorator_from_middleware(HastyMiddleware)(GATED),
        "HastyMiddleware()",
    ),
    "a partial of a decorator": (
        method_decorator(partial(hasty), name="dispatch")(
            type("Door", (Adult,), {})
        ).as_view(),
        "Door.dispatch()",
    ),
    "something else is wrapped": (wraps(GATED)(answers_itself), "answers_itself()"),
    "a framework's wrapper of something else": (
        update_wrapper(csrf_exempt(answers_itself), GATED),
        "csrf_exempt.__wrapped__",
    ),
    "as_view": (Shown.as_view(), "hasty(), Shown.as_view()"),
    "guarded": (Unguarded.as_view(), "Unguarded.guarded()"),
    "declared": (AsksNobody.as_view(), "AsksNobody.declared()"),
    "a dispatch that is wrapped": (Wrapped.as_view(), "Wrapped.dispatch()"),
    "a decorated dispatch": (Decorated.as_view(), "Decorated.dispatch()"),
    "one of two decorators": (DecoratedTwice.as_view(), "DecoratedTwice.dispatch()"),
    "handle_exception": (Forgiving.as_view(), "Forgiving.handle_exception()"),
    "finalize_response": (Rewriting.as_view(), "Rewriting.finalize_response()"),
    "check_permissions": (Unchecked.as_view(), "Unchecked.check_permissions()"),
    "a decorated handler": (BelowHandler.as_view(), "hasty_method()"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", OPEN_ALL_THE_SAME)
def test_a_gate_that_own_code_goes_around_is_said_to_be_decided_by_it(site, name):
    """Nobody is signed in, and the page is shown."""
    door, own_code = OPEN_ALL_THE_SAME[name]
    site(path("door/", door))
    answer = Client().get("/door/", {"preview": "1"})
    assert (answer.status_code, b"secret" in answer.content) == (200, True)
    line = listed()[0].split("; ")
    assert "age_over_18" in line[2]
    assert line[3:] == [own_code]


NO_CODE_OF_ITS_OWN = {
    "a gate": GATED,
    "below wrappers of Django": never_cache(csrf_exempt(login_not_required(GATED))),
    "in a transaction": transaction.atomic(GATED),
    "partial": partial(GATED),
    "above a decorator of the site": adult(hasty(view)),
    "a class": Adult.as_view(),
    "around a class with a dispatch": adult(type("Door", (Preview,), {"get": Page.get}).as_view()),
    "a dispatch below the gate": type("Door", (ClaimRequiredMixin, Preview), {
        "required_claims": ("age_over_18",), "get": Page.get,
    }).as_view(),
    "a test of Django's": user_passes_test(bool)(GATED),
    "an endpoint": AdultEndpoint.as_view(),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CODE_OF_ITS_OWN)
def test_a_gate_that_is_asked_first_stands_by_itself(site, name):
    """Else the column would be full, and nobody would read it."""
    site(path("door/", NO_CODE_OF_ITS_OWN[name]))
    assert listed()[0].split("; ")[3:] == []
