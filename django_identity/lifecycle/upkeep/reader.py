"""Reading from the service as a person: with their access token, refreshed once if refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.views.decorators.debug import sensitive_variables

from django_identity.exceptions import AccessTokenRejected, ReauthorizationNeeded
from django_identity.lifecycle.upkeep import tokens
from django_identity.lifecycle.upkeep.tokens import HeldToken
from django_identity.models import LinkedIdentity
from django_identity.service import ServiceClient

T = TypeVar("T")


class Reader:
    """Reads with the person's access token, and refreshes the token once if it is refused."""

    def __init__(self, identity: LinkedIdentity, client: ServiceClient) -> None:
        self._identity = identity
        self.client = client
        self._held: HeldToken | None = None

    @sensitive_variables()
    def read(self, call: Callable[[str], T]) -> T:
        """``call(access_token)``. A 401 for a fresh token means that the consent was revoked."""
        held = self._held or tokens.current(self._identity, client=self.client)
        if not held.fresh:
            try:
                return self._called(call, held)
            except AccessTokenRejected:
                held = tokens.current(self._identity, rejected=held.value, client=self.client)
        try:
            return self._called(call, held)
        except AccessTokenRejected as refused:
            tokens.mark_dead(self._identity, generation=held.generation, reason=refused.code)
            raise ReauthorizationNeeded(f"a fresh token was refused: {refused.code}") from refused

    @sensitive_variables()
    def _called(self, call: Callable[[str], T], held: HeldToken) -> T:
        self._held = held
        return call(held.value)
