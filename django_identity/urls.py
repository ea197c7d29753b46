"""``path("identity/", include("django_identity.urls"))``.

Each address except ``health`` accepts the alias of an application.
"""

from __future__ import annotations

from django.urls import include, path

from django_identity.views import account, connect, health, sign_in, webhook

app_name = "identity"

urlpatterns = [
    path("login/", sign_in.login, name="login"),
    path("login/<slug:application>/", sign_in.login, name="login"),
    path("callback/", sign_in.callback, name="callback"),
    path("callback/<slug:application>/", sign_in.callback, name="callback"),
    path("connect/", connect.connect, name="connect"),
    path("connect/<slug:application>/", connect.connect, name="connect"),
    path("connected/", connect.connected, name="connected"),
    path("connected/<slug:application>/", connect.connected, name="connected"),
    path("account/", account.account, name="account"),
    path("account/<slug:application>/", account.account, name="account"),
    path("download/", account.download, name="download"),
    path("download/<slug:application>/", account.download, name="download"),
    path("disconnect/", account.disconnect, name="disconnect"),
    path("disconnect/<slug:application>/", account.disconnect, name="disconnect"),
    path("webhook/", webhook.webhook, name="webhook"),
    path("webhook/<slug:application>/", webhook.webhook, name="webhook"),
    path("health/", health.health, name="health"),
    path("api/", include("django_identity.api.urls")),
]
