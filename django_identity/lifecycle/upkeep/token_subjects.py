"""Find the subject in a token answer."""

from __future__ import annotations

from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.credentials import identity_tokens
from django_identity.exceptions import KeysUnavailable, SubjectMismatch
from django_identity.lifecycle.upkeep import key_sets
from django_identity.service.messages import TokenAnswer, is_subject


@sensitive_variables()
def named_subject(application: Application, answer: TokenAnswer) -> str | None:
    """The subject in the answer's own members, its ``id_token`` or a JWT access token, or None.

    A token counts only if the service's keys verify it. Raises ``SubjectMismatch`` if two of them
    name different subjects.
    """
    tokens = [token for token in (answer.id_token, answer.access_token) if token.count(".") == 2]
    named = {answer.subject, *_verified(application, tokens)} - {None}
    if len(named) > 1:
        raise SubjectMismatch("names two subjects", endpoint="token")
    return named.pop() if named else None


@sensitive_variables()
def _verified(application: Application, tokens: list[str]) -> list[str]:
    if not tokens:
        return []
    try:
        # An unknown ``kid`` causes no fetch of newer keys: these fetches are for credentials.
        keys = key_sets.current(application)
    except KeysUnavailable:
        return []
    found = [
        identity_tokens.subject_of(
            token,
            keys=keys,
            issuer=application.api_origin,
            audience=application.client_id,
            leeway=key_sets.CLOCK_LEEWAY,
        )
        for token in tokens
    ]
    return [subject for subject in found if subject is not None and is_subject(subject)]
