"""``path("identity/api/", include("django_identity.api.urls"))``."""

from django.urls import path

from django_identity.api import views

app_name = "identity_api"

ENDPOINTS = {
    "me": views.MeView,
    "login": views.LoginView,
    "callback": views.CallbackView,
    "connect": views.ConnectView,
    "disconnect": views.DisconnectView,
}

urlpatterns = [
    path(name, view.as_view(), name=name) for name, view in ENDPOINTS.items()
]
