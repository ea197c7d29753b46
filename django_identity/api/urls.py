"""The addresses under ``api/``, in the URL namespace ``identity:api``."""

from __future__ import annotations

from django.urls import path

from django_identity.api import views

app_name = "api"

ENDPOINTS = {
    "me": views.MeView,
    "login": views.LoginView,
    "callback": views.CallbackView,
    "connect": views.ConnectView,
    "disconnect": views.DisconnectView,
}

urlpatterns = [
    path(f"{name}{alias}", view.as_view(), name=name)
    for name, view in ENDPOINTS.items()
    for alias in ("", "/<slug:alias>")
]
