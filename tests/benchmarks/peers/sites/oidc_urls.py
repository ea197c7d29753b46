from django.urls import include, path

from tests.benchmarks.peers.sites.who import PAGES

urlpatterns = [*PAGES, path("oidc/", include("mozilla_django_oidc.urls"))]
