"""Pages that the site opens to everybody. The package opens its own."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.urls import include, path

from tests.sites.plain import views

urlpatterns = [
    path("", views.home, name="home"),
    path("whoami/", login_not_required(views.whoami)),
    path("adults/", views.adults),
    path("loans/", views.loans),
    path("britons/", views.britons),
    path("offer/", login_not_required(views.offer)),
    path("upkeep/", login_not_required(views.upkeep)),
    path(
        "accounts/login/",
        LoginView.as_view(template_name="local.html"),
        name="local-sign-in",
    ),
    path("identity/", include("django_identity.urls")),
]
