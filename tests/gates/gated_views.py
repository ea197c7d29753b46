"""Every way to put a gate, each in front of the same secret; all of them ask for three things.

``age_over_18``, ``country_resident`` with the value ``NG``, and ``level_2``.
"""

from collections.abc import Callable
from datetime import timedelta
from inspect import isawaitable
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.urls import include, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.generic import View
from rest_framework.decorators import api_view, permission_classes
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    KycLevelRequiredMixin,
    claim_required,
    kyc_level_required,
)
from django_identity.models import Consent, LinkedIdentity, StoredClaim
from tests.factories import change_each

SECRET = b"secret"
Way = Callable[[Any], bytes]

adult = claim_required("age_over_18")
local = claim_required("country_resident=NG")
verified = kyc_level_required("level_2")


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(SECRET)


async def async_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(SECRET)


class Page(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(SECRET)

    post = get


class AsyncPage(View):
    async def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(SECRET)

    post = get


class AdultMixin(ClaimRequiredMixin):
    required_claims = ("age_over_18",)


class LocalMixin(ClaimRequiredMixin):
    required_claims = ("country_resident=NG",)


class VerifiedMixin(KycLevelRequiredMixin):
    required_kyc_level = "level_2"


class Stacked(AdultMixin, LocalMixin, VerifiedMixin, Page):
    """One mixin beside the other."""


class StackedAsync(VerifiedMixin, LocalMixin, AdultMixin, AsyncPage):
    """The other way round."""


class Both(ClaimRequiredMixin, KycLevelRequiredMixin, Page):
    """One class with two kinds of gates."""

    required_claims = ("country_resident=NG",)
    required_kyc_level = "level_2"


class Added(Both):
    """A subclass that names another claim takes its parent's not away."""

    required_claims = ("age_over_18",)


@method_decorator([adult, verified], name="dispatch")
class DecoratedInside(LocalMixin, Page):
    pass


class Endpoint(APIView):
    def get(self, request: Any) -> Response:
        return Response(SECRET.decode(), headers=dict(request.query_params.items()))


class Api(Endpoint):
    permission_classes: Any = [
        HasClaim("age_over_18"),
        HasClaim("country_resident=NG"),
        HasKycLevel("level_2"),
    ]


@api_view(["GET"])
@permission_classes(Api.permission_classes)
def api_function(request: Any) -> Response:
    return Response(SECRET.decode())


urlpatterns = [
    path("decorators/", adult(local(verified(view)))),
    path("async-decorators/", adult(local(verified(async_view)))),
    path("classes/", Stacked.as_view()),
    path("async-classes/", StackedAsync.as_view()),
    path("permissions/", Api.as_view()),
    path("", include("tests.urls")),
]


def answer_of(gated: Any, user: Any, method: str = "get", **headers: str) -> Any:
    """What ``gated`` answers to ``user``, be it sync or async."""
    request: Any = getattr(RequestFactory(), method)("/here/?a=1", headers=headers)
    request.user = user

    async def auser() -> Any:
        return user

    request.auser = auser
    answer = gated(request)
    return async_to_sync(_awaited)(answer) if isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer


def api_answer_of(gated: Any, user: Any) -> Any:
    """What ``gated``, of Django REST framework, answers to ``user``."""
    request = APIRequestFactory().get("/here/")
    force_authenticate(request, user=user)
    return gated(request).render()


def by_request(gated: Any) -> Way:
    return lambda user: answer_of(gated, user).content


def by_api(gated: Any) -> Way:
    return lambda user: api_answer_of(gated, user).content


def by_template(source: str) -> Way:
    template = Template("{% load identity %}" + source)
    return lambda user: template.render(Context({"user": user})).encode()


ASKED = (
    'user|has_claim:"age_over_18"',
    'user|has_claim:"country_resident=NG"',
    'user|has_kyc_level:"level_2"',
)
SHAPES = {
    "if": "{{% if {0} and {1} and {2} %}}secret{{% else %}}denied{{% endif %}}",
    "if not": "{{% if not {0} or not {1} or not {2} %}}denied{{% else %}}secret{{% endif %}}",
    "if or": (
        "{{% if {0} or nobody %}}{{% if {1} or nobody %}}{{% if {2} or nobody %}}secret"
        "{{% endif %}}{{% endif %}}{{% endif %}}"
    ),
    "if ==": (
        "{{% if {0} == False %}}denied{{% elif {1} == False %}}denied{{% elif {2} != True %}}denied"
        "{{% else %}}secret{{% endif %}}"
    ),
}
TAG = (
    '{% identity_gate "age_over_18" "country_resident=NG" level="level_2" %}secret'
    "{% else %}denied{% end_identity_gate %}"
)

WAYS: dict[str, Way] = {
    "decorators": by_request(adult(local(verified(view)))),
    "decorators, async": by_request(verified(adult(local(async_view)))),
    "mixins": by_request(Stacked.as_view()),
    "mixins, async": by_request(StackedAsync.as_view()),
    "subclass adds a claim": by_request(Added.as_view()),
    "as_view adds a claim": by_request(Both.as_view(required_claims=("age_over_18",))),
    "decorators of a class": by_request(DecoratedInside.as_view()),
    "decorators around mixins": by_request(adult(Both.as_view())),
    "permissions": by_api(Api.as_view()),
    "permissions of a function": by_api(api_function),
    "tag": by_template(TAG),
    **{
        f"filters, {shape}": by_template(text.format(*ASKED))
        for shape, text in SHAPES.items()
    },
}


# What a person may lack, and how they lose it.


def claim(name: str, **changes: Any) -> Callable[[], Any]:
    return lambda: StoredClaim.objects.filter(claim_type=name).update(**changes)


def identity(**changes: Any) -> Callable[[], Any]:
    return lambda: change_each(**changes)


A_MINUTE_AGO = timezone.now() - timedelta(minutes=1)
LACKS: dict[str, Callable[[], Any]] = {
    "the claim": lambda: StoredClaim.objects.filter(claim_type="age_over_18").delete(),
    "a claim that is not revoked": claim("age_over_18", revoked_at=A_MINUTE_AGO),
    "a claim that holds": claim("age_over_18", valid_until=A_MINUTE_AGO),
    "the value": claim("country_resident", value="GH"),
    "the level": identity(kyc_level="level_1"),
    "a level that is verified": identity(kyc_status="rejected"),
    "consent": identity(consent=Consent.REVOKED),
    "this environment": identity(environment="live"),
    "an identity": lambda: LinkedIdentity.objects.all().delete(),
    "an account that is not disabled": lambda: User.objects.update(is_active=False),
}
