"""Sign-in: ``begin`` before the redirect to the service, ``complete`` at the callback.

There are three purposes: ``sign_in``, ``link`` (tied to its user) and ``renew`` (tied to its
subject). A started sign-in is one row. One browser can complete it, once, within an hour.
"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple, Self

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils import timezone

from django_identity import conf, database, exceptions
from django_identity.conf.rules import Scopes
from django_identity.lifecycle.arriving import identification, linking
from django_identity.lifecycle.ground import sealing
from django_identity.lifecycle.said import scopes
from django_identity.models import AuthorizationRequest, LinkedIdentity, Purpose, digest
from django_identity.models.flows import COMPLETED
from django_identity.service.authorization import authorization_url, code_verifier

# Seconds from the button to the callback. A first verification at the service takes long.
SIGN_IN_LIFETIME = 3600
STATE = re.compile(r"[A-Za-z0-9_-]{16,128}")
# RFC 6749 appendix A.11: visible ASCII and space. The limit of the length is our own.
CODE = re.compile(r"[\x20-\x7e]{1,8192}")

#: The service's code at the callback -> ours. Only the site can mend those but the first.
REFUSALS = {
    "access_denied": "access_denied",
    "environment_mismatch": "environment_mismatch",
    "invalid_scope": "configuration",
    "invalid_client": "client_rejected",
    "unauthorized_client": "client_rejected",
}


@dataclass(frozen=True, slots=True)
class Callback:
    """The parameters of the service's redirect: ``code``, or the ``error`` that it means."""

    state: str = field(repr=False)
    code: str = field(repr=False, default="")
    error: exceptions.IdentityError | None = None

    @classmethod
    def parse(cls, *, state: list[str], code: list[str], error: list[str]) -> Self:
        """Parse the values of each query parameter. Raises ``FlowError``.

        A code or an error without a value counts as left out (RFC 6749 §3.1).
        """
        code = [value for value in code if value]
        error = [value for value in error if value]
        results = [*code, *error]
        if len(state) != 1 or len(results) != 1:
            raise exceptions.FlowError(
                "not one state and one code",
                code="callback_invalid",
            )
        if not STATE.fullmatch(state[0]):
            raise exceptions.FlowError("no state of ours", code="callback_invalid")
        if code and not CODE.fullmatch(code[0]):
            raise exceptions.FlowError("no code", code="callback_invalid")
        if code:
            return cls(state[0], code[0])
        # A malformed error is still an error. Its text is not used.
        service_code = exceptions.shaped_code(error[0])
        code_here = REFUSALS.get(service_code.lower(), "authorization_refused")
        refusal = exceptions.FlowError(service_code, code=code_here)
        return cls(state[0], error=refusal)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a callback. ``linked`` is None if the same callback was completed before."""

    next_url: str
    purpose: Purpose
    linked: LinkedIdentity | None = None


class Plan(NamedTuple):
    """What a press of the button means: sign in, link or renew, and what the person is asked."""

    purpose: Purpose
    scopes: Scopes


def plan_for(user: AbstractBaseUser | None, *, more: str = "") -> Plan:
    """What a press of the button means for ``user``, who is signed in. ``more``: see ``scopes``."""
    purpose = Purpose.SIGN_IN
    allowed: list[str] = []
    if user is not None:
        purpose = Purpose.LINK
        linked = LinkedIdentity.objects.of_user(user.pk)
        if linked is not None:
            purpose = Purpose.RENEW
            allowed = linked.scopes

    asked = scopes.asked_for(more=more, allowed=allowed)
    return Plan(purpose, asked)


def begin(
    *,
    user: AbstractBaseUser | None,
    next_url: str,
    redirect_uri: str,
    browser_key: str,
    more: str = "",
) -> str:
    """Start a sign-in and return the service's address to send the browser to.

    ``user``: who is signed in now. ``browser_key``: the secret in this browser's cookie, which
    alone can complete the sign-in. ``more``: a scope for which a gate has asked.

    Raises:

    - ``ConfigurationError``: the settings are wrong
    - ``LinkingRefused``: ``user`` is not linked, and waits for the account's erasure
    """
    application = conf.application()
    plan = plan_for(user, more=more)
    if user is not None and plan.purpose == Purpose.LINK:
        # The person would agree at the service to what is refused at the callback.
        linking.require_no_erasure(user.pk)
    state = secrets.token_urlsafe(32)
    verifier = code_verifier()
    request = AuthorizationRequest(
        state_digest=digest(state),
        browser_digest=digest(browser_key),
        environment=application.environment,
        purpose=plan.purpose,
        user_id=user.pk if user else None,
        next=next_url,
        redirect_uri=redirect_uri,
        scopes=list(plan.scopes),
        expires_at=timezone.now() + timedelta(seconds=SIGN_IN_LIFETIME),
    )
    request.code_verifier = sealing.seal(request, verifier, "code_verifier")
    request.save(force_insert=True)
    return authorization_url(
        application,
        state=state,
        verifier=verifier,
        redirect_uri=redirect_uri,
        scopes=plan.scopes,
    )


def complete(
    callback: Callback,
    *,
    browser_key: str | None,
    user: AbstractBaseUser | None,
) -> Completed:
    """Complete a sign-in: claim it, ask the service who the person is, then link.

    ``callback``: ``Callback.parse(state=[…], code=[…], error=[…])``. ``user``: who is signed in
    now. The caller begins the session. After an error only the sign-in is spent. What a
    returning person brought stays stored, also after a refusal: see ``linking``.

    Raises:

    - ``FlowError``: the callback is unknown, used, expired, or the service refused it
    - ``LinkingRefused``: the subject may not be linked, or may not sign in
    - ``ServiceError``: the service did not say who the person is
    - ``CredentialRejected``: the credential is about another subject
    - ``RuntimeError``: inside a transaction, whose rollback would undo the claim
    """
    database.require_no_transaction(database.IN_STEPS)
    request = _find(callback.state, browser_key)
    if user is not None and request.completed_by_id == user.pk:
        # They reload the page or go back to it, in the session that this sign-in gave them.
        return Completed(request.next, Purpose(request.purpose))
    row = _claim(request)
    try:
        if request.purpose != Purpose.SIGN_IN:
            # A link or a renewal belongs to the user who started it.
            if user is None:
                raise exceptions.FlowError(code="session_ended")
            if user.pk != request.user_id:
                raise exceptions.FlowError(code="user_changed")
        if callback.error is not None:
            raise callback.error
        learned = identification.learn(request, callback.code, user)
        linked = linking.link(learned)
        _note_completed(row, linked)
    except exceptions.IdentityError as error:
        database.tried_again(partial(row.update, outcome=error.code))
        error.next_url = request.next
        raise
    return Completed(request.next, Purpose(request.purpose), linked)


def _note_completed(
    row: QuerySet[AuthorizationRequest],
    linked: LinkedIdentity,
) -> None:
    """Raises ``LinkingRefused`` if a receiver of the site has deleted the account meanwhile."""
    # Not ``tried_again``: since the last call ``linking`` has used the connection.
    try:
        row.update(outcome=COMPLETED, completed_by=linked.user_id)
    except IntegrityError as error:
        raise exceptions.LinkingRefused(
            "a receiver has deleted the account",
            code="user_inactive",
        ) from error


def _find(state: str, browser_key: str | None) -> AuthorizationRequest:
    """The sign-in with this state that this browser started. Raises ``FlowError``."""
    rows = AuthorizationRequest.objects.filter(state_digest=digest(state))
    # Not ``first``, which would have the one row sorted.
    found = next(iter(rows), None)
    if found is None:
        raise exceptions.FlowError(code="request_unknown")
    started = (found.environment, found.browser_digest)
    here = (conf.application().environment, digest(browser_key or ""))
    # A callback with the attacker's own state and code must not sign the victim in as the attacker
    # (RFC 6749 §10.12). So the state counts only in the browser that began.
    if started != here:
        raise exceptions.FlowError(code="request_unknown")
    return found


def _claim(request: AuthorizationRequest) -> QuerySet[AuthorizationRequest]:
    """Claim the sign-in for this callback, and return its row.

    It is claimed for good, even after a failure.
    """
    now = timezone.now()
    if request.consumed_at is None and request.expires_at <= now:
        raise exceptions.FlowError(code="request_expired", next_url=request.next)
    row = AuthorizationRequest.objects.filter(pk=request.pk)
    # One conditional UPDATE: of two callbacks with the same state, only one goes on to exchange its
    # code, which must be used once (RFC 6749 §10.5).
    # The verifier has no use after this callback, which has read it.
    if not row.filter(consumed_at=None).update(consumed_at=now, code_verifier=""):
        raise exceptions.FlowError(code="request_used", next_url=request.next)
    return row
