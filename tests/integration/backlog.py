"""Many identities whose re-fetch is due."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from django_identity.lifecycle.ground import sealing
from django_identity.models import (
    Consent,
    LinkedIdentity,
    LinkedVia,
    TokenGrant,
    digest,
)
from django_identity.secrets import Secret


def make_backlog(size: int) -> None:
    """Identities that are due, with tokens of the counting service that are too old."""
    now = timezone.now()
    # Each is read again, because MySQL returns no keys of what is inserted.
    User.objects.bulk_create(User(username=f"waiting-{n}") for n in range(size))
    users = User.objects.filter(username__startswith="waiting-")
    LinkedIdentity.objects.bulk_create(
        LinkedIdentity(
            user=user,
            environment="test",
            subject=user.username,
            subject_digest=digest("test", user.username),
            consent=Consent.GRANTED,
            linked_via=LinkedVia.OAUTH,
            scopes=["claims:read"],
            refetch_due_at=now - timedelta(minutes=1),
        )
        for user in users
    )
    TokenGrant.objects.bulk_create(
        TokenGrant(
            identity=identity,
            access_token=sealing.seal(
                identity,
                Secret(f"at-0-{identity.subject}"),
                "access_token",
            ),
            refresh_token=sealing.seal(
                identity,
                Secret(f"rt-0-{identity.subject}"),
                "refresh_token",
            ),
            access_expires_at=now,
        )
        for identity in LinkedIdentity.objects.filter(subject__startswith="waiting-")
    )
