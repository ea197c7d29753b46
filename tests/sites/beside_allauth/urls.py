"""allauth's own pages in place of Django's sign-in page."""

from django.urls import include, path

from tests.sites.plain.urls import urlpatterns as plain

urlpatterns = [path("accounts/", include("allauth.urls")), *plain]
