"""What the tests of the admin share: operators, addresses, and a way to press its buttons."""

from collections.abc import Iterator

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
IDENTITIES = "admin:django_identity_linkedidentity_changelist"
IDENTITY = "admin:django_identity_linkedidentity_change"
EVENTS = "admin:django_identity_webhookevent_changelist"
EVENT = "admin:django_identity_webhookevent_change"
RECEIPT = "admin:django_identity_erasurereceipt_change"
RECEIPTS = "admin:django_identity_erasurereceipt_changelist"
OVERVIEW = "admin:django_identity_overview"


def superuser() -> Client:
    """A browser in which somebody is signed in who may do everything."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"), backend=MODEL_BACKEND)
    return browser


def staff(*permissions: str) -> Client:
    """A browser of a member of staff with these permissions and no other."""
    user = User.objects.create(username=f"staff-{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Client()
    browser.force_login(user, backend=MODEL_BACKEND)
    return browser


def page(browser: Client, name: str, *arguments: object, **query: str) -> str:
    response = browser.get(reverse(name, args=arguments), query)
    assert response.status_code == 200
    return response.content.decode()


def press(
    browser: Client, action: str, *rows: object, into: str = IDENTITIES, **typed: str
) -> HttpResponse:
    """Send the action for ``rows``; with ``confirmed="yes"`` as its confirmation page does."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **typed}
    return browser.post(reverse(into), chosen)


def every_page(browser: Client) -> Iterator[str]:
    """Every page of the admin, the questions that its actions ask included."""
    for name in (IDENTITIES, EVENTS, RECEIPTS, OVERVIEW, "admin:index"):
        yield page(browser, name)
    for model in (LinkedIdentity, WebhookEvent, ErasureReceipt):
        name = f"admin:django_identity_{model._meta.model_name}"
        for row in model.objects.all():
            yield page(browser, f"{name}_change", row.pk)
            yield page(browser, f"{name}_history", row.pk)
    for action in ("refetch", "revoke", "erase"):
        yield press(browser, action, LinkedIdentity.objects.get()).content.decode()
    yield press(browser, "replay", WebhookEvent.objects.get(), into=EVENTS).content.decode()
