"""The pages of the walk as async views: gates, filters in templates, and claims."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import RequestContext, Template
from django.urls import path
from django.views import View

from django_identity.gates import (
    ClaimRequiredMixin,
    aclaims_of,
    claim_required,
    claims_of,
)
from tests.sites.plain.urls import urlpatterns as pages
from tests.sites.plain.views import OFFER


async def whoami(request: HttpRequest) -> JsonResponse:
    user = await request.auser()
    claims = await aclaims_of(user)
    return JsonResponse({"user": user.get_username() or None, "claims": claims})


@claim_required("age_over_18")
async def adults(request: HttpRequest) -> HttpResponse:
    # Behind a gate the request remembers what the gate read.
    assert claims_of(await request.auser())["age_over_18"] is True
    return HttpResponse("for adults")


class Britons(ClaimRequiredMixin, View):
    required_claims = ("country_resident=GB",)
    on_closed = "forbid"

    async def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("for residents")


async def offer(request: HttpRequest) -> HttpResponse:
    """The template decides, once the view has read the person's standing."""
    await aclaims_of(request.user)
    return HttpResponse(Template(OFFER).render(RequestContext(request)))


urlpatterns = [
    path("whoami/", whoami),
    path("adults/", adults),
    path("britons/", Britons.as_view()),
    path("offer/", offer),
    *pages,
]
