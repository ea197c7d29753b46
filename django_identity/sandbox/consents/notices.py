"""Tell a person, on the account page and by e-mail, which data an application received."""

from collections.abc import Sequence

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from django_identity.sandbox.consents.scopes import described
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import Client, Notice, User

SENDER = "Sandbox Identity <no-reply@sandbox.example>"


def tell(user: User, client: Client, scopes: Sequence[str]) -> None:
    """Store a notice that ``client`` received ``scopes``, and e-mail it after the commit."""
    notice = Notice.objects.create(
        user=user, client=client, scopes=list(scopes), created_at=clock.now()
    )
    transaction.on_commit(lambda: _send(notice))


def listed(user: User) -> list[Notice]:
    """Return the notices of ``user``, newest first."""
    return list(Notice.objects.filter(user=user).select_related("client"))


def _send(notice: Notice) -> None:
    """Send the notice by e-mail, in the person's language."""
    # A subject must be one line, but a developer may have typed line breaks into the name.
    name = " ".join(notice.client.name.split())
    context = {
        "name": name,
        "person": notice.user,
        "notice": notice,
        "scopes": described(notice.scopes),
        "account": settings.SANDBOX_ORIGIN + reverse("account"),
    }
    with translation.override(notice.user.language):
        send_mail(
            _("%(name)s received your information") % {"name": name},
            render_to_string("sandbox/connect_email.txt", context),
            SENDER,
            [notice.user.email],
        )
