"""``path("identity/", include("django_identity.urls"))``.

Each address except ``health`` accepts the alias of an application.
"""

from __future__ import annotations

from django.urls import include, path

from django_identity.views import account, connect, health, sign_in, webhook

app_name = "identity"

urlpatterns = [
    path("login/", sign_in.login, name="login"),
    path("login/<slug:alias>/", sign_in.login, name="login"),
    path("callback/", sign_in.callback, name="callback"),
    path("callback/<slug:alias>/", sign_in.callback, name="callback"),
    path("connect/", connect.connect, name="connect"),
    path("connect/<slug:alias>/", connect.connect, name="connect"),
    path("connected/", connect.connected, name="connected"),
    path("connected/<slug:alias>/", connect.connected, name="connected"),
    path("account/", account.account, name="account"),
    path("account/<slug:alias>/", account.account, name="account"),
    path("download/", account.download, name="download"),
    path("download/<slug:alias>/", account.download, name="download"),
    path("disconnect/", account.disconnect, name="disconnect"),
    path("disconnect/<slug:alias>/", account.disconnect, name="disconnect"),
    path("erase/", account.erase, name="erase"),
    path("erase/<slug:alias>/", account.erase, name="erase"),
    path("sign-out/", account.sign_out, name="sign_out"),
    path("sign-out/<slug:alias>/", account.sign_out, name="sign_out"),
    path("webhook/", webhook.webhook, name="webhook"),
    path("webhook/<slug:alias>/", webhook.webhook, name="webhook"),
    path("health/", health.health, name="health"),
    path("api/", include("django_identity.api.urls")),
]
