"""A site with a user model of its own closes accounts: run it with the settings of that site.

It prints what the site's receivers were told, and what the stored events still say.
"""

import json
from typing import Any

import django
from django.core.management import call_command

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402

from django_identity import signals  # noqa: E402
from django_identity.models import LinkedIdentity, WebhookEvent  # noqa: E402
from tests.factories import make_event, make_identity  # noqa: E402

told: list[str] = []


def ended(user: Any, **_arguments: Any) -> None:
    told.append(str(user.pk))


def linked(name: str) -> Any:
    """An account with an identity, of which an event is stored."""
    fields = {"email": f"{name}@example.org", "password": None, "country": "NG"}
    user = get_user_model().objects.create_user(**fields)
    make_event(make_identity(user, subject=name), "kyc.verified")
    return user


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    signals.sessions_ended.connect(ended)
    one, two, three = linked("one"), linked("two"), linked("three")
    keys = [str(each.pk) for each in (one, two, three)]
    one.delete()
    get_user_model().objects.filter(email="two@example.org").delete()
    LinkedIdentity.objects.filter(user=three).delete()
    left = WebhookEvent.objects.exclude(subject="").count()
    print(json.dumps({"keys": keys, "told": told, "left": left}))  # noqa: T201
