"""The addresses that the walk visits. A site may have others beside them."""

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path

from tests.sites.plain import views

urlpatterns = [
    path("", views.home, name="home"),
    path("whoami/", views.whoami),
    path("adults/", views.adults),
    path("loans/", views.loans),
    path("britons/", views.britons),
    path("offer/", views.offer),
    path("upkeep/", views.upkeep),
    path(
        "accounts/login/",
        LoginView.as_view(template_name="admin/login.html"),
        name="local-sign-in",
    ),
    path("identity/", include("django_identity.urls")),
]
if apps.is_installed("django.contrib.admin"):
    urlpatterns.append(path("admin/", admin.site.urls))
