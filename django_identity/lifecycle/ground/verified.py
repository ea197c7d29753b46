"""A claims answer with what proves it, as ``key_sets`` made it and ``claims`` stores it."""

from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle.ground import clocks
from django_identity.models import LinkedIdentity
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

    def columns_for(self, identity: LinkedIdentity) -> dict[str, Any]:
        """The columns of the identity. The newest date of issue refuses an older credential.

        An answer whose credential is missing is younger than the stored credential. It ends all
        claims, so the stored credential is refused from then on, too: a cache may still have it.
        """
        newest_at = identity.credential_issued_at
        if self.proof is None:
            if newest_at is not None and identity.credential_expires_at is not None:
                newest_at += clocks.A_SECOND
            return {"credential_expires_at": None, "credential_issued_at": newest_at}
        columns = {"credential_expires_at": clocks.end_of(self.proof)}
        if self.issued_at is not None:
            columns["credential_issued_at"] = self.issued_at
        return columns

    @property
    def lasts_until(self) -> datetime:
        """How long this answer suffices, if it is usable."""
        if self.proof is None:
            return timezone.now() + clocks.CREDENTIAL_LIFETIME
        return clocks.end_of(self.proof)
