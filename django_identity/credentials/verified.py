"""The result of a verification."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django_identity.credentials.disclosures import thaw


@dataclass(frozen=True, slots=True, repr=False)
class VerifiedCredential:
    """A verified credential. Only ``verify`` creates it.

    ``subject``: the service's user id. ``environment``: ``"live"`` or ``"test"``. ``kid``: the
    signing key. ``claims``: claim name -> disclosed value. ``exp``, ``iat``: the signed times, in
    seconds since the epoch.

    A disclosed claim can be false: the service also signs ``False`` and ``{"verified": false}``.

    Deeply immutable: objects are read-only mappings (equal to dicts) and arrays are tuples.
    ``claims_as_json`` gives plain dicts and lists.
    """

    subject: str
    environment: str
    kid: str
    claims: Mapping[str, Any] = field(hash=False)
    exp: float
    iat: float | None

    @property
    def expires_at(self) -> datetime:
        """``exp`` as an aware datetime, in UTC."""
        return datetime.fromtimestamp(self.exp, UTC)

    @property
    def issued_at(self) -> datetime | None:
        """``iat`` as an aware datetime, in UTC; None if it is missing."""
        if self.iat is None:
            return None
        return datetime.fromtimestamp(self.iat, UTC)

    def claims_as_json(self) -> dict[str, Any]:
        """The claims as new dicts and lists, for ``json.dumps`` or a ``JSONField``."""
        return dict(thaw(self.claims))

    def __repr__(self) -> str:
        # Names only: no personal data.
        return (
            f"<VerifiedCredential environment={self.environment!r} kid={self.kid!r} "
            f"expires_at={self.expires_at.isoformat()} claims={sorted(self.claims)}>"
        )
