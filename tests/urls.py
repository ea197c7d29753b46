"""The addresses of the test suite's site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from django_identity.gates import claim_required, kyc_level_required


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.user.get_username())


def behind_every_gate(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


for gate in (
    claim_required("age_over_18", "kyc_verified", "unique_human"),
    claim_required("country_resident=NG"),
    kyc_level_required("level_1"),
    kyc_level_required("level_2"),
):
    behind_every_gate = gate(behind_every_gate)

urlpatterns = [
    path("gated/", behind_every_gate),
    path("", home, name="home"),
    path("accounts/login/", LoginView.as_view(), name="local-login"),
    path("admin/", admin.site.urls),
    path("identity/api/", include("django_identity.api.urls")),
    path("identity/", include("django_identity.urls")),
]
