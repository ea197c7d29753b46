"""``path("identity/", include("django_identity.urls"))``.

Each address accepts the alias of an application.
"""

from django.urls import path

from django_identity.views import account, connect, sign_in, webhook

app_name = "identity"

PAGES = {
    "login": sign_in.login,
    "callback": sign_in.callback,
    "connect": connect.connect,
    "connected": connect.connected,
    "account": account.account,
    "download": account.download,
    "disconnect": account.disconnect,
    "erase": account.erase,
    "sign-out": account.sign_out,
    "webhook": webhook.webhook,
}

urlpatterns = [
    path(f"{page}/{alias}", view, name=page.replace("-", "_"))
    for page, view in PAGES.items()
    for alias in ("", "<slug:alias>/")
]
