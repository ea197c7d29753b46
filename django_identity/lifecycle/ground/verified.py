"""A claims answer with what proves it, as ``key_sets`` made it and ``claims`` stores it."""

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle.ground import clocks
from django_identity.service.answers import ClaimsAnswer


class VerifiedAnswer(NamedTuple):
    """A claims answer, and its verified credential, if any."""

    answer: ClaimsAnswer
    proof: VerifiedCredential | None

    @property
    def issued_at(self) -> datetime | None:
        """When the credential was issued, if it tells."""
        if self.proof is None:
            return None
        return clocks.time_of_issue(self.proof)

    @property
    def lasts_until(self) -> datetime:
        """How long this answer suffices, if it is usable."""
        if self.proof is None:
            return timezone.now() + clocks.CREDENTIAL_LIFETIME
        return clocks.end_of(self.proof)
