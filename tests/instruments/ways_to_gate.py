"""Ways to gate a view.

``WAYS``: each is a function of the gate, which makes a view, or a list of URL patterns.
``PAIRS``: two views, or lists of URL patterns, of which the second asks for something else.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.conf.urls.i18n import i18n_patterns
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import IsAdminUser
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import ViewSet

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    claim_required,
    kyc_level_required,
    recent_sign_in_required,
    scope_required,
)
from tests.gates.gated_views import Endpoint, Page, adult, async_view, view

verified_adult = claim_required("age_over_18", "kyc_verified")


def opened(inner: Any) -> Any:
    """In place of a gate."""
    return inner


def patterns(written: Any) -> list[Any]:
    """A single view stands at ``/door/``."""
    return written if isinstance(written, list) else [path("door/", written)]


def timed(inner: Any) -> Any:
    @wraps(inner)
    def outer(request: HttpRequest) -> HttpResponse:
        return inner(request)

    return outer


# Classes


def page(*bases: type, **attributes: Any) -> Any:
    return type("Door", (*bases, Page), attributes).as_view()


def on_method(gate: Any, method: Any) -> Any:
    return method if gate is opened else method_decorator(gate)(method)


def on_class(gate: Any, name: str) -> Any:
    door = type("Door", (Page,), {})
    return (
        door if gate is opened else method_decorator(gate, name=name)(door)
    ).as_view()


class AdultsAlone(ClaimRequiredMixin, Page):
    required_claims = ("age_over_18",)


class ShortCut(Page):
    """Answers some requests before the mixins behind it are asked."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return (
            self.get(request)
            if request.GET
            else super().dispatch(request, *args, **kwargs)
        )


# Of another module it would have another name.
NAMESAKE = type("AdultsAlone", (Page,), {"__module__": __name__}).as_view()


# Django REST framework


def endpoint(*permissions: Any) -> Any:
    return Endpoint.as_view(permission_classes=permissions)


def function_of(*permissions: Any, below: Any = opened) -> Any:
    """A function below ``@api_view``, perhaps with a decorator in between."""

    def door(request: Any) -> Response:
        return Response()

    return api_view(["GET"])(permission_classes(permissions)(below(door)))


class Doors(ViewSet):
    def list(self, request: Any) -> Response:
        return Response()

    def create(self, request: Any) -> Response:
        return Response()


def routed(**attributes: Any) -> list[Any]:
    router = SimpleRouter()
    router.register("door", type("Doors", (Doors,), attributes), basename="door")
    return router.urls


class Hurried(Endpoint):
    """Asks its permissions of some requests alone."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        if not request.GET:
            super().initial(request, *args, **kwargs)


class Lenient(HasClaim("age_over_18")):  # type: ignore[misc]
    """Lets somebody in whom the gate keeps out."""

    def has_permission(self, request: Any, view: Any) -> bool:
        return request.method == "GET" or super().has_permission(request, view)


WAYS: dict[str, Callable[[Any], Any]] = {
    "a function": lambda gate: gate(view),
    "async": lambda gate: gate(async_view),
    "beside another gate": lambda gate: gate(claim_required("kyc_verified")(view)),
    "below a wrapper": lambda gate: never_cache(timed(gate(view))),
    "partial": lambda gate: partial(gate(view)),
    "decorated call": lambda gate: type(
        "Callable",
        (),
        {"__call__": on_method(gate, Page.get)},
    )(),
    "lambda": lambda gate: gate(lambda request: view(request)),
    "around a class": lambda gate: gate(Page.as_view()),
    "dispatch": lambda gate: on_class(gate, "dispatch"),
    "one method": lambda gate: on_class(gate, "post"),
    "a handler itself": lambda gate: page(post=on_method(gate, Page.post)),
    "below api_view": lambda gate: function_of(below=gate),
    "beside a nameless permission": lambda gate: gate(endpoint(partial(IsAdminUser))),
    "action of a viewset": lambda gate: routed(create=on_method(gate, Doors.create)),
    "include": lambda gate: [path("a/", include([path("door/", gate(view))]))],
    "languages": lambda gate: i18n_patterns(path("door/", gate(view))),
    "regex": lambda gate: [re_path(r"^door/(?P<number>\d+)/$", gate(view))],
}

ADULT, LEVEL_2 = HasClaim("age_over_18"), HasKycLevel("level_2")
PORTUGAL, FRANCE = "country_resident=PT", "country_resident=FR"
any_page, door = path("<slug:page>/", view), path("door/", adult(view))

PAIRS: dict[str, tuple[Any, Any]] = {
    # Decorators
    "one claim of two": (verified_adult(view), adult(view)),
    "level": (kyc_level_required("level_2")(view), kyc_level_required("level_1")(view)),
    "scope": (scope_required("kyc:read")(view), view),
    "a claim becomes a scope": (
        claim_required("email")(view),
        scope_required("email")(view),
    ),
    "recent sign-in": (
        recent_sign_in_required(minutes=10)(view),
        recent_sign_in_required(minutes=50)(view),
    ),
    "a value more": (
        claim_required("country_resident=PT")(view),
        claim_required("country_resident=PT|FR")(view),
    ),
    "the answer of a closed gate": (
        adult(view),
        claim_required("age_over_18", on_closed=lambda request, closed: view(request))(
            view,
        ),
    ),
    # Classes
    "a new handler": (
        page(get=on_method(adult, Page.get), post=None),
        page(get=on_method(adult, Page.get)),
    ),
    "a class becomes a function": (page(post=on_method(adult, Page.post)), view),
    "claim mixin": (AdultsAlone.as_view(), page()),
    "as_view": (
        AdultsAlone.as_view(required_claims=["kyc_verified"]),
        AdultsAlone.as_view(),
    ),
    "a dispatch before the mixin": (
        page(AdultsAlone),
        type("Door", (ShortCut, AdultsAlone), {}).as_view(),
    ),
    # Django REST framework
    "permission": (endpoint(ADULT), endpoint()),
    "or becomes and": (endpoint(ADULT | IsAdminUser), endpoint(ADULT & IsAdminUser)),
    "one more in or": (
        endpoint(ADULT | IsAdminUser),
        endpoint(ADULT | IsAdminUser | LEVEL_2),
    ),
    "or of values": (
        endpoint(HasClaim(PORTUGAL) | HasClaim(FRANCE)),
        endpoint(HasClaim(f"{PORTUGAL}|FR|ES")),
    ),
    "not": (endpoint(~LEVEL_2), endpoint(~HasKycLevel("level_3"))),
    "permission made by a function": (
        endpoint(lambda: ADULT()),
        endpoint(lambda: IsAdminUser()),
    ),
    "a lenient permission": (endpoint(ADULT), endpoint(Lenient)),
    "permissions of a function": (function_of(ADULT), function_of()),
    "viewset": (routed(permission_classes=[ADULT]), routed()),
    "initial": (endpoint(ADULT), Hurried.as_view(permission_classes=[ADULT])),
    # Addresses
    "an earlier pattern": ([door, any_page], [any_page, door]),
    "an earlier pattern with a parameter": (
        [path("<str:name>/", adult(view))],
        [any_page, path("<str:name>/", adult(view))],
    ),
    "an earlier include": (
        [path("a/", include([door]))],
        [re_path("^a/", view), path("a/", include([door]))],
    ),
    "a namesake at another address": (
        [path("old/", AdultsAlone.as_view())],
        [path("old/", AdultsAlone.as_view()), path("new/", NAMESAKE)],
    ),
    "another view's address": (
        [path("a/", AdultsAlone.as_view()), path("b/", view)],
        [path("b/", NAMESAKE)],
    ),
}
