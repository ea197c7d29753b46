"""The same pages, and one that only a live identity opens."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from django_identity.gates import claim_required
from tests.sites.plain import urls


@claim_required("age_over_18", application="live", on_closed="forbid")
def real_adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("for real adults")


urlpatterns = [path("real-adults/", real_adults), *urls.urlpatterns]
