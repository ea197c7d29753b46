"""What the tests of the admin share: operators, addresses, and a way to press its buttons."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from django_identity.models import LinkedIdentity

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


def said(browser: Client) -> str:
    """What stands on the list after the redirect, its messages included."""
    return page(browser, IDENTITIES)


def still_there(identity: LinkedIdentity) -> LinkedIdentity | None:
    return LinkedIdentity.objects.filter(pk=identity.pk).first()
