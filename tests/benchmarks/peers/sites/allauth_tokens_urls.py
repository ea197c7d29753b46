from django.urls import include, path

from tests.benchmarks.peers.sites.who import PAGES

urlpatterns = [*PAGES, path("accounts/", include("allauth.urls"))]
