"""The addresses under ``api/``, in the URL namespace ``identity:api``."""

from __future__ import annotations

from django.urls import path

from django_identity.api import views

app_name = "api"

urlpatterns = [
    path("me", views.me, name="me"),
    path("me/<slug:alias>", views.me, name="me"),
    path("login", views.login, name="login"),
    path("login/<slug:alias>", views.login, name="login"),
    path("callback", views.callback, name="callback"),
    path("callback/<slug:alias>", views.callback, name="callback"),
    path("connect", views.connect, name="connect"),
    path("connect/<slug:alias>", views.connect, name="connect"),
    path("disconnect", views.disconnect, name="disconnect"),
    path("disconnect/<slug:alias>", views.disconnect, name="disconnect"),
]
