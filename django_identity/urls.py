"""``path("identity/", include("django_identity.urls"))``."""

from django.urls import path

from django_identity.views import account, answer, connect, sign_in, webhook

app_name = "identity"

#: Addresses that somebody types into a form of the service, perhaps without the last slash. The
#: service follows no redirect, and Django's to the address with the slash would show a code twice.
REGISTERED = ("callback", "webhook")
PAGES = {
    "login": sign_in.login,
    "callback": sign_in.callback,
    "answer": answer.answer,
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
    path(f"{page}/", view, name=page.replace("-", "_")) for page, view in PAGES.items()
]
# Without names: pages and log lines have the address with the slash.
urlpatterns += [path(page, PAGES[page]) for page in REGISTERED]
