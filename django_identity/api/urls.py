"""Under ``api/`` of the package's addresses; names in the namespace ``identity:api``."""

from __future__ import annotations

from django.urls import path

from django_identity.api import views

app_name = "api"

urlpatterns = [
    path("connect", views.connect, name="connect"),
    path("connect/<slug:application>", views.connect, name="connect"),
]
