"""Started sign-ins: stored before the person leaves, and used once when they come back."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import vault
from django_identity.conf import Application
from django_identity.exceptions import FlowError
from django_identity.models import AuthorizationRequest, Purpose, digest
from django_identity.service.authorization import PkcePair

COMPLETED = "completed"
# Seconds from the button to the callback. A first verification at the service takes long.
SIGN_IN_LIFETIME = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInIntent:
    """The intent of a sign-in: its purpose, the signed-in user if any, and the next page."""

    purpose: Purpose
    user: AbstractBaseUser | None
    next_url: str
    redirect_uri: str


def start(
    application: Application, intent: SignInIntent, *, state: str, browser_key: str, pkce: PkcePair
) -> AuthorizationRequest:
    """Store a new sign-in, before the redirect to the service."""
    request = AuthorizationRequest(
        state_digest=digest(state),
        browser_digest=digest(browser_key),
        application=application.alias,
        environment=application.environment,
        purpose=intent.purpose,
        user_id=intent.user.pk if intent.user else None,
        next=intent.next_url,
        redirect_uri=intent.redirect_uri,
        scopes=list(application.scopes),
        expires_at=timezone.now() + timedelta(seconds=SIGN_IN_LIFETIME),
    )
    keys, context = application.encryption_keys, request.sealing_context("code_verifier")
    request.code_verifier = vault.seal(pkce.verifier, keys=keys, context=context)
    request.save(force_insert=True)
    return request


def find(application: Application, *, state: str, browser_key: str) -> AuthorizationRequest:
    """The sign-in with this state that this browser started. Raises ``FlowError``."""
    found = AuthorizationRequest.objects.filter(state_digest=digest(state)).first()
    started = (application.alias, application.environment, digest(browser_key))
    if found is None or (found.application, found.environment, found.browser_digest) != started:
        raise FlowError(code="request_unknown")
    return found


def claim(request: AuthorizationRequest) -> None:
    """Claim the sign-in for this callback. It cannot be claimed again, even after a failure.

    Raises ``FlowError`` or ``FlowError``.
    """
    now = timezone.now()
    if request.consumed_at is None and request.expires_at <= now:
        raise FlowError(code="request_expired")
    unused = AuthorizationRequest.objects.filter(pk=request.pk, consumed_at=None)
    if not unused.update(consumed_at=now, updated_at=now):
        raise FlowError(code="request_used")
    request.consumed_at = now


def close(
    request: AuthorizationRequest,
    *,
    outcome: str = COMPLETED,
    completed_by: AbstractBaseUser | None = None,
) -> None:
    """Record how a claimed sign-in ended, and delete its code verifier."""
    AuthorizationRequest.objects.filter(pk=request.pk).update(
        outcome=outcome,
        completed_by_id=completed_by.pk if completed_by else None,
        code_verifier="",
        updated_at=timezone.now(),
    )
