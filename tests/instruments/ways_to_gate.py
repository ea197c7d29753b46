"""Ways to gate a view. Each is written three times: gated, opened, and gated more strictly.

``hides``: what the map says of the way that it cannot read.
"""

from collections.abc import Callable
from dataclasses import dataclass
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

from django_identity.api.permissions import (
    HasClaim,
    HasKycLevel,
    HasRecentSignIn,
    HasScope,
)
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    KycLevelRequiredMixin,
    RecentSignInRequiredMixin,
    ScopeRequiredMixin,
    claim_required,
    closed_response,
    closed_to,
    kyc_level_required,
    recent_sign_in_required,
    scope_required,
)
from tests.gates.gated_views import Endpoint, Page, async_view, view

adult = claim_required("age_over_18")
verified_adult = claim_required("age_over_18", "kyc_verified")


@dataclass(frozen=True)
class Way:
    """Views, or lists of URL patterns. A single view stands at ``/door/``."""

    gated: Any
    opened: Any
    stricter: Any
    hides: str = ""

    def patterns(self, name: str) -> list[Any]:
        written = getattr(self, name)
        return written if isinstance(written, list) else [path("door/", written)]


def mixed(base: type, *mixins: type, **attributes: Any) -> Any:
    return type("Door", (*mixins, base), attributes).as_view()


def page(**attributes: Any) -> Any:
    return type("Door", (Page,), attributes).as_view()


def endpoint(*permissions: Any) -> Any:
    return Endpoint.as_view(permission_classes=permissions)


# Wrappers


def timed(inner: Any) -> Any:
    @wraps(inner)
    def outer(request: HttpRequest) -> HttpResponse:
        return inner(request)

    return outer


def unnamed(inner: Any) -> Any:
    """Without ``functools.wraps``."""

    def outer(request: HttpRequest) -> HttpResponse:
        return inner(request)

    return outer


def either(first: Any, second: Any) -> Any:
    """Chooses between two views, without ``functools.wraps``."""

    def outer(request: HttpRequest) -> HttpResponse:
        return first(request) if request.GET else second(request)

    return outer


class Wrapper:
    """An instance that calls a view."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.inner(request)


def called(*decorators: Any) -> Any:
    """An instance whose ``__call__`` is decorated."""
    call = Page.get
    for decorator in decorators:
        call = method_decorator(decorator)(call)
    return type("Callable", (), {"__call__": call})()


# Classes

ON_POST = method_decorator(adult, name="post")
EVERYWHERE = method_decorator(adult, name="dispatch")


def handled(*decorators: Any) -> Any:
    """A class whose ``post`` is decorated, and whose ``get`` is open."""
    post: Any = Page.post
    for decorator in decorators:
        post = method_decorator(decorator)(post)
    return page(post=post)


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


# Django REST framework


def function_of(*permissions: Any, below: Any = None) -> Any:
    """A function below ``@api_view``, perhaps with a decorator in between."""

    def door(request: Any) -> Response:
        return Response()

    inner = below(door) if below else door
    return api_view(["GET"])(permission_classes(permissions)(inner))


class Doors(ViewSet):
    def list(self, request: Any) -> Response:
        return Response()

    def create(self, request: Any) -> Response:
        return Response()


def routed(**attributes: Any) -> list[Any]:
    router = SimpleRouter()
    router.register("door", type("Doors", (Doors,), attributes), basename="door")
    return router.urls


class Chosen(Endpoint):
    """Decides about its permissions by code of its own."""

    asked: tuple[Any, ...] = ()

    def get_permissions(self) -> list[Any]:
        return [permission() for permission in self.asked]


class Hurried(Endpoint):
    """Asks its permissions of some requests alone."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        if not request.GET:
            super().initial(request, *args, **kwargs)


class Lenient(HasClaim("age_over_18")):  # type: ignore[misc]
    """Lets somebody in whom the gate keeps out."""

    def has_permission(self, request: Any, view: Any) -> bool:
        return request.method == "GET" or super().has_permission(request, view)


# Questions of a view's own


def asking(*claims: str) -> Callable[..., Any]:
    def door(request: HttpRequest) -> Any:
        closed = closed_to(Gate(*claims), request.user) if claims else None
        return closed_response(request, closed) if closed else view(request)

    return door


def serving(*claims: str) -> Callable[..., Any]:
    """As a content management system serves its pages."""

    def door(request: HttpRequest) -> Any:
        return claim_required(*claims)(view)(request) if claims else view(request)

    return door


OWN_CODE = "what a view's own code asks"
ON_LEVEL = KycLevelRequiredMixin
ON_SCOPE = ScopeRequiredMixin
any_page = path("<slug:page>/", view)
door = path("door/", adult(view))

WAYS = {
    # Decorators
    "claim": Way(adult(view), view, verified_adult(view)),
    "async": Way(adult(async_view), async_view, verified_adult(async_view)),
    "one claim of two": Way(
        verified_adult(view),
        adult(view),
        claim_required("age_over_18", "kyc_verified", "unique_human")(view),
    ),
    "level": Way(
        kyc_level_required("level_2")(view),
        kyc_level_required("level_1")(view),
        kyc_level_required("level_3")(view),
    ),
    "scope": Way(
        scope_required("kyc:read")(view), view, adult(scope_required("kyc:read")(view))
    ),
    "a claim becomes a scope": Way(
        claim_required("email")(view),
        scope_required("email")(view),
        adult(claim_required("email")(view)),
    ),
    "recent sign-in": Way(
        recent_sign_in_required(minutes=10)(view),
        recent_sign_in_required(minutes=50)(view),
        recent_sign_in_required(minutes=5)(view),
    ),
    "value": Way(
        claim_required("country_resident=PT")(view),
        claim_required("country_resident=PT|FR")(view),
        claim_required("country_resident=PT", "age_over_18")(view),
    ),
    "one of several values": Way(
        claim_required("country_resident=PT|FR")(view),
        claim_required("country_resident=PT|FR|ES")(view),
        claim_required("country_resident=FR")(view),
    ),
    "two decorators become one": Way(
        adult(claim_required("kyc_verified")(view)),
        adult(view),
        verified_adult(kyc_level_required("level_1")(view)),
    ),
    "the answer of a closed gate": Way(
        adult(view),
        claim_required("age_over_18", on_closed=lambda request, closed: view(request))(
            view
        ),
        claim_required("age_over_18", "kyc_verified", on_closed="forbid")(view),
    ),
    # Wrappers
    "below a wrapper": Way(
        never_cache(timed(adult(view))),
        never_cache(timed(view)),
        never_cache(timed(verified_adult(view))),
    ),
    "below a wrapper without wraps": Way(
        unnamed(adult(view)),
        unnamed(view),
        unnamed(verified_adult(view)),
        hides="a gate in an object that is called, or in a wrapper",
    ),
    "one of two functions": Way(
        either(adult(view), adult(view)),
        either(view, adult(view)),
        either(verified_adult(view), adult(view)),
        hides="a gate in an object that is called, or in a wrapper",
    ),
    "partial": Way(partial(adult(view)), partial(view), partial(verified_adult(view))),
    "instance": Way(
        Wrapper(adult(view)),
        Wrapper(view),
        Wrapper(verified_adult(view)),
        hides="a gate in an object that is called, or in a wrapper",
    ),
    "decorated call": Way(called(adult), called(), called(verified_adult)),
    "lambda": Way(
        adult(lambda request: view(request)),
        lambda request: view(request),
        verified_adult(lambda request: view(request)),
    ),
    # Classes
    "around a class": Way(
        adult(Page.as_view()), Page.as_view(), verified_adult(Page.as_view())
    ),
    "dispatch": Way(
        EVERYWHERE(type("Door", (Page,), {})).as_view(),
        page(),
        method_decorator([adult, verified_adult], name="dispatch")(
            type("Door", (Page,), {})
        ).as_view(),
    ),
    "one method": Way(
        ON_POST(type("Door", (Page,), {})).as_view(),
        page(),
        EVERYWHERE(type("Door", (Page,), {})).as_view(),
    ),
    "a handler itself": Way(
        handled(adult), handled(), handled(adult, kyc_level_required("level_2"))
    ),
    "a new handler": Way(
        page(get=method_decorator(adult)(Page.get), post=None),
        page(get=method_decorator(adult)(Page.get)),
        page(get=method_decorator(verified_adult)(Page.get), post=None),
    ),
    "a class becomes a function": Way(handled(adult), view, verified_adult(view)),
    "claim mixin": Way(
        AdultsAlone.as_view(),
        page(),
        mixed(AdultsAlone, required_claims=["kyc_verified"]),
    ),
    "level mixin": Way(
        mixed(Page, ON_LEVEL, required_kyc_level="level_2"),
        mixed(Page, ON_LEVEL, required_kyc_level="level_1"),
        mixed(Page, ON_LEVEL, required_kyc_level="level_3"),
    ),
    "scope mixin": Way(
        mixed(Page, ON_SCOPE, required_scope="kyc:read"),
        page(),
        mixed(AdultsAlone, ON_SCOPE, required_scope="kyc:read"),
    ),
    "sign-in mixin": Way(
        mixed(Page, RecentSignInRequiredMixin, recent_sign_in_minutes=10),
        mixed(Page, RecentSignInRequiredMixin, recent_sign_in_minutes=11),
        mixed(Page, RecentSignInRequiredMixin, recent_sign_in_minutes=9),
    ),
    "inherited mixin": Way(
        mixed(AdultsAlone),
        mixed(Page),
        mixed(AdultsAlone, ON_LEVEL, required_kyc_level="level_1"),
    ),
    "as_view": Way(
        AdultsAlone.as_view(required_claims=["kyc_verified"]),
        AdultsAlone.as_view(),
        AdultsAlone.as_view(required_claims=["kyc_verified", "unique_human"]),
    ),
    "a dispatch before the mixin": Way(
        mixed(AdultsAlone),
        type("Door", (ShortCut, AdultsAlone), {}).as_view(),
        mixed(AdultsAlone, ON_LEVEL, required_kyc_level="level_1"),
    ),
    # Django REST framework
    "permission": Way(
        endpoint(HasClaim("age_over_18")),
        endpoint(),
        endpoint(HasClaim("age_over_18"), HasKycLevel("level_1")),
    ),
    "scope permission": Way(
        endpoint(HasScope("kyc:read")),
        endpoint(),
        endpoint(HasScope("kyc:read") & HasClaim("age_over_18")),
    ),
    "sign-in permission": Way(
        endpoint(HasRecentSignIn(10)),
        endpoint(HasRecentSignIn(20)),
        endpoint(HasRecentSignIn(5)),
    ),
    "or becomes and": Way(
        endpoint(HasClaim("age_over_18") | IsAdminUser),
        endpoint(HasClaim("age_over_18") | IsAdminUser | HasKycLevel("level_1")),
        endpoint(HasClaim("age_over_18") & IsAdminUser),
    ),
    "and becomes or": Way(
        endpoint(HasClaim("age_over_18") & HasKycLevel("level_2")),
        endpoint(HasClaim("age_over_18") | HasKycLevel("level_2")),
        endpoint(HasClaim("age_over_18") & HasKycLevel("level_3")),
    ),
    "or of values": Way(
        endpoint(HasClaim("country_resident=PT") | HasClaim("country_resident=FR")),
        endpoint(HasClaim("country_resident=PT|FR|ES")),
        endpoint(HasClaim("country_resident=PT")),
    ),
    "not": Way(
        endpoint(~HasKycLevel("level_2")),
        endpoint(~HasKycLevel("level_3")),
        endpoint(~HasKycLevel("level_1")),
    ),
    "permission made by a function": Way(
        endpoint(lambda: HasClaim("age_over_18")()),
        endpoint(lambda: IsAdminUser()),
        endpoint(lambda: HasClaim("age_over_18", "kyc_verified")()),
    ),
    "permission made by partial": Way(
        endpoint(partial(HasClaim("age_over_18"))),
        endpoint(partial(IsAdminUser)),
        endpoint(partial(HasClaim("age_over_18")), HasKycLevel("level_1")),
    ),
    "a nameless permission beside it": Way(
        adult(endpoint(partial(IsAdminUser))),
        endpoint(partial(IsAdminUser)),
        verified_adult(endpoint(partial(IsAdminUser))),
    ),
    "a lenient permission": Way(
        endpoint(HasClaim("age_over_18")),
        endpoint(Lenient),
        endpoint(HasClaim("age_over_18"), Lenient),
    ),
    "permissions of a function": Way(
        function_of(HasClaim("age_over_18")),
        function_of(),
        function_of(HasClaim("age_over_18", "kyc_verified")),
    ),
    "below api_view": Way(
        function_of(below=adult), function_of(), function_of(below=verified_adult)
    ),
    "viewset": Way(
        routed(permission_classes=[HasClaim("age_over_18")]),
        routed(),
        routed(permission_classes=[HasClaim("age_over_18"), HasKycLevel("level_1")]),
    ),
    "action of a viewset": Way(
        routed(create=method_decorator(adult)(Doors.create)),
        routed(),
        routed(create=method_decorator(verified_adult)(Doors.create)),
    ),
    "initial": Way(
        endpoint(HasClaim("age_over_18")),
        Hurried.as_view(permission_classes=[HasClaim("age_over_18")]),
        endpoint(HasClaim("age_over_18", "kyc_verified")),
    ),
    "get_permissions": Way(
        Chosen.as_view(asked=(HasClaim("age_over_18"),)),
        Chosen.as_view(),
        Chosen.as_view(asked=(HasClaim("unique_human"),)),
        hides="get_permissions",
    ),
    # Addresses
    "include": Way(
        [path("a/", include([door]))],
        [path("a/", include([path("door/", view)]))],
        [path("a/", include([path("door/", verified_adult(view))]))],
    ),
    "languages": Way(
        i18n_patterns(door),
        i18n_patterns(path("door/", view)),
        i18n_patterns(path("door/", verified_adult(view))),
    ),
    "regex": Way(
        [re_path(r"^door/(?P<number>\d+)/$", adult(view))],
        [re_path(r"^door/(?P<number>\d+)/$", view)],
        [re_path(r"^door/(?P<number>\d+)/$", verified_adult(view))],
    ),
    "an earlier pattern": Way(
        [door, any_page],
        [any_page, door],
        [path("<slug:page>/", verified_adult(view)), door],
    ),
    "an earlier pattern with a parameter": Way(
        [path("<str:name>/", adult(view))],
        [any_page, path("<str:name>/", adult(view))],
        [path("<slug:page>/", verified_adult(view)), path("<str:name>/", adult(view))],
    ),
    "an earlier include": Way(
        [path("a/", include([door]))],
        [re_path("^a/", view), path("a/", include([door]))],
        [path("a/door/", verified_adult(view)), path("a/", include([door]))],
    ),
    "another address": Way(
        [path("old/", AdultsAlone.as_view())],
        [
            path("old/", AdultsAlone.as_view()),
            path(
                "new/", type("AdultsAlone", (Page,), {"__module__": __name__}).as_view()
            ),
        ],
        [path("new/", AdultsAlone.as_view(required_claims=["kyc_verified"]))],
    ),
    "another view's address": Way(
        [path("a/", AdultsAlone.as_view()), path("b/", view)],
        [path("b/", type("AdultsAlone", (Page,), {"__module__": __name__}).as_view())],
        [path("b/", AdultsAlone.as_view(required_claims=["kyc_verified"]))],
    ),
    # What no map sees
    "closed_to": Way(
        asking("age_over_18"),
        asking(),
        asking("age_over_18", "unique_human"),
        hides=OWN_CODE,
    ),
    "a gate in serve": Way(
        serving("age_over_18"),
        serving(),
        serving("age_over_18", "unique_human"),
        hides=OWN_CODE,
    ),
}
