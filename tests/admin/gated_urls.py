"""A site with four gates, for the admin's lists of them."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from django_identity.gates import claim_required, kyc_level_required, recent_sign_in_required


def inside(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    path("bar/", claim_required("age_over_18")(inside)),
    path("local/", claim_required("country_resident=NG")(inside)),
    path("loans/", kyc_level_required("level_2")(inside)),
    path("payout/", recent_sign_in_required(10)(inside)),
    path("", include("tests.urls")),
]
