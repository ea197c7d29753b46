"""Views that ask for a recent sign-in, or for one scope more."""

from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path

from django_identity.api.permissions import HasRecentSignIn, HasScope
from django_identity.gates import (
    RecentSignInRequiredMixin,
    ScopeRequiredMixin,
    recent_sign_in_required,
    scope_required,
)
from tests.gates.gated_views import Endpoint, Page, async_view, view


class Payout(RecentSignInRequiredMixin, Page):
    recent_sign_in_minutes = 60


class QuickPayout(Payout):
    recent_sign_in_minutes = 5


class Papers(ScopeRequiredMixin, Page):
    required_scope = "documents:read"


PART = (
    '{% load identity %}{% identity_gate scope="documents:read" minutes=10 %}open'
    "{% else %}closed{% end_identity_gate %}"
)


def part(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(PART).render(RequestContext(request)))


urlpatterns = [
    path("part/", part),
    path("level/", scope_required("kyc:read")(view)),
    path("payout/", recent_sign_in_required(minutes=10)(view)),
    path("payout/async/", recent_sign_in_required()(async_view)),
    path("payout/class/", QuickPayout.as_view()),
    path("payout/api/", Endpoint.as_view(permission_classes=[HasRecentSignIn(10)])),
    path("papers/", scope_required("documents:read")(view)),
    path("papers/class/", Papers.as_view()),
    path(
        "papers/api/",
        Endpoint.as_view(permission_classes=[HasScope("documents:read")]),
    ),
    path("", include("tests.urls")),
]
