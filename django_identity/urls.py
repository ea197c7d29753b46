"""``path("identity/", include("django_identity.urls"))``. Each takes an application's alias."""

from __future__ import annotations

from django.urls import path

from django_identity.views import account, sign_in

app_name = "identity"

urlpatterns = [
    path("login/", sign_in.login, name="login"),
    path("login/<slug:application>/", sign_in.login, name="login"),
    path("callback/", sign_in.callback, name="callback"),
    path("callback/<slug:application>/", sign_in.callback, name="callback"),
    path("account/", account.account, name="account"),
    path("account/<slug:application>/", account.account, name="account"),
    path("disconnect/", account.disconnect, name="disconnect"),
    path("disconnect/<slug:application>/", account.disconnect, name="disconnect"),
]
