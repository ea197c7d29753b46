"""The addresses of each site: some of its own, beside or in place of those of the plain one."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required, login_required
from django.contrib.auth.views import LoginView
from django.db.models.signals import pre_save
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import RequestContext, Template
from django.urls import include, path
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from rest_framework_simplejwt.views import TokenRefreshView

from django_identity.gates import (
    ClaimRequiredMixin,
    aclaims_of,
    claim_required,
    claims_of,
)
from django_identity.policy import IdentityPolicy
from tests.sites import replica
from tests.sites.plain import views
from tests.sites.plain.urls import urlpatterns as pages
from tests.snippets import module_of

# subpath: the pages of the walk as async views


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
    return HttpResponse(Template(views.OFFER).render(RequestContext(request)))


# replica: it catches up while the site does its upkeep


@csrf_exempt
def upkeep(request: HttpRequest) -> HttpResponse:
    answered = views.upkeep(request)
    replica.copy()
    return answered


# custom_user


class Policy(IdentityPolicy):
    def new_user_fields(self, *, profile: Any, kyc: Any) -> Mapping[str, Any]:
        return {
            **super().new_user_fields(profile=profile, kyc=kyc),
            "country": profile.country,
        }


# strict


def validate_every_row() -> None:
    """Every row of every model must be valid before it is saved."""
    pre_save.connect(_validate)


def _validate(instance: Any, **_about: Any) -> None:
    instance.full_clean()


match settings.SITE:
    case "subpath":
        own = [
            path("whoami/", whoami),
            path("adults/", adults),
            path("britons/", Britons.as_view()),
            path("offer/", offer),
        ]
    case "replica":
        own = [path("upkeep/", upkeep)]
    case "beside_allauth":
        own = [
            path("accounts/", include("allauth.urls")),
            path("members/", login_required(views.whoami)),
        ]
    case "beside_others":
        # The snippets of ``docs/beside.md`` at addresses of their own.
        simplejwt = module_of("simplejwt")
        own = [
            path("tokens/", simplejwt.Exchange.as_view()),
            path("tokens/refresh/", TokenRefreshView.as_view()),
            path("by-token/wine", simplejwt.Wine.as_view()),
            path("ninja/", module_of("ninja").api.urls),
            path("identity/api/", include("django_identity.api.urls")),
        ]
    case "strict":
        # Pages that the site opens to everybody. The package opens its own.
        local = LoginView.as_view(template_name="local.html")
        own = [
            path("whoami/", login_not_required(views.whoami)),
            path("offer/", login_not_required(views.offer)),
            path("upkeep/", login_not_required(views.upkeep)),
            path("accounts/login/", local, name="local-sign-in"),
        ]
    case _:
        own = []
urlpatterns = [*own, *pages]
