"""Re-fetches in a test: of one identity, and of all that is due."""

from django_identity.lifecycle.upkeep import Refetched, refetch_all, refetch_these
from django_identity.models import LinkedIdentity


def refetched(identity: LinkedIdentity) -> Refetched | None:
    """The result of a re-fetch of its row as it is now, or None if there is nothing to fetch."""
    return next(refetch_these([identity.pk]), None)


def all_refetched(most: int = 1000) -> list[Refetched]:
    """The results of all re-fetches that are due."""
    return list(refetch_all(most=most))
