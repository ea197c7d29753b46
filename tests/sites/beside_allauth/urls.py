"""allauth's own pages in place of Django's sign-in page, and one for whoever is signed in."""

from django.contrib.auth.decorators import login_required
from django.urls import include, path

from tests.sites.plain import views
from tests.sites.plain.urls import urlpatterns as plain

urlpatterns = [
    path("accounts/", include("allauth.urls")),
    path("members/", login_required(views.whoami)),
    *plain,
]
