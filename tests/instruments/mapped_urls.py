"""URLs of every kind, for the map of gates."""

from functools import wraps
from typing import Any

from django.conf.urls.i18n import i18n_patterns
from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, include, path, re_path
from django.urls.resolvers import RoutePattern
from django.views.decorators.cache import never_cache
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import IsAdminUser
from rest_framework.response import Response

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import ClaimRequiredMixin, claim_required
from tests.gates.gated_views import Added, AdultMixin, Endpoint, Page, adult, verified
from tests.gates.gated_views import view as open_view


def lent(request: HttpRequest) -> HttpResponse:
    return HttpResponse("lent")


def tell(*_asked: object) -> HttpResponse:
    return HttpResponse("closed")


def timed(view: Any) -> Any:
    @wraps(view)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return inner


class Nameless:
    """A view without a name."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("open")


class Adults(AdultMixin, Page):
    pass


class AsksNothing(ClaimRequiredMixin, Page):
    """A mistake of the site: the mixin without a claim."""


@api_view(["GET"])
@permission_classes([IsAdminUser, HasKycLevel("level_1")])
def endpoint(request: HttpRequest) -> Response:
    return Response()


combined = HasClaim("age_over_18") & ~(HasKycLevel("level_3") | IsAdminUser)
inner = [path("door/", adult(open_view))]
urlpatterns = [
    path("", open_view),
    path(
        "one/",
        claim_required("age_over_18", "country_resident=NG", on_closed=tell)(open_view),
    ),
    path("two/", timed(never_cache(verified(timed(adult(lent)))))),
    path("nameless/", Nameless()),
    path("at-url/", Adults.as_view(required_claims=["unique_human"])),
    path("added/", Added.as_view()),
    path("nothing/", AsksNothing.as_view()),
    path("api/", Endpoint.as_view(permission_classes=[combined])),
    path("api/function/", endpoint),
    path("a/", include((inner, "a"))),
    path("b/", include((inner, "b"))),
    URLResolver(RoutePattern("broken/"), "tests.instruments.broken_urls"),
    re_path(r"^old/(?P<number>\d+)/$", open_view),
    *i18n_patterns(path("hello/", adult(open_view))),
]
