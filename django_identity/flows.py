"""The door: what a site's own code may call.

Errors leave as ``boundary`` says, so each function also raises ``UnexpectedError`` (the site's own
code failed) and ``StorageUnavailable`` (the database did not answer), each without a variable of
ours. The faces of the package are doors themselves, and call ``lifecycle``; they come in here where
they go on with the error.
"""

from django.contrib.auth.models import AbstractBaseUser

from django_identity.boundary import boundary
from django_identity.lifecycle.arriving import connect, sign_in
from django_identity.lifecycle.arriving.sign_in import Callback as Callback
from django_identity.lifecycle.arriving.sign_in import Completed
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.said import events, tokens
from django_identity.lifecycle.standing import standing
from django_identity.lifecycle.standing.standing import Standing
from django_identity.models import ErasureReceipt, LinkedIdentity
from django_identity.secrets import Secret


@boundary
def begin_sign_in(
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
    """
    return sign_in.begin(
        user=user,
        next_url=next_url,
        redirect_uri=redirect_uri,
        browser_key=browser_key,
        more=more,
    )


@boundary
def complete_sign_in(
    callback: Callback, *, browser_key: str | None, user: AbstractBaseUser | None
) -> Completed:
    """Complete a sign-in: claim it, ask the service who the person is, then link.

    ``callback``: ``Callback.parse(state=[…], code=[…], error=[…])``. ``user``: who is signed in
    now. The caller begins the session. After an error nothing has changed, but for what somebody
    brought who returned and is refused.

    Raises:

    - ``FlowError``: the callback is unknown, used, expired, or the service refused it
    - ``LinkingRefused``: the subject may not be linked, or may not sign in
    - ``ServiceError``: the service did not say who the person is
    - ``CredentialRejected``: the credential is about another subject
    - ``RuntimeError``: inside a transaction, whose rollback would undo the claim
    """
    return sign_in.complete(callback, browser_key=browser_key, user=user)


@boundary
def redeem_code(pasted: str, *, user: AbstractBaseUser) -> LinkedIdentity:
    """Redeem the Connect code in ``pasted``, and link its identity to ``user``, who is signed in.

    The code is sent at most once. A later call gets the identity that it linked, or is refused.

    Raises:

    - ``FlowError``: the code has another shape, is used, or too many were tried
    - ``LinkingRefused``: the subject may not be linked to ``user``
    - ``ServiceError``: the service refused the code, or did not answer
    - ``ValueError``: ``user`` is no stored account
    - ``RuntimeError``: inside a transaction, whose rollback would forget that the code was sent
    """
    return connect.redeem(pasted, user=user)


@boundary
def standing_of(user: object) -> Standing:
    """The standing of ``user``: what the site stores, and which gates are open.

    Only a saved instance of the site's user model has one. It is remembered on the instance for 5
    seconds at most, and until this process changes an identity. Expiry is checked at each call.
    """
    return standing.standing_of(user)


@boundary
def access_token_for(
    identity: LinkedIdentity, *, rejected: Secret | None = None
) -> Secret:
    """A valid access token of ``identity``, refreshed if necessary.

    ``rejected``: a token that the service refused before its expiry. It counts as expired.
    Concurrent callers, in any number of threads and processes, cause one refresh.

    Raises:

    - ``ReauthorizationNeeded``: the grant is dead, or the account is disabled or hidden
    - ``RefreshPending``: another attempt is running, or has just failed
    - ``RateLimited``: the service asked for a pause, whose end it may name
    - ``ServiceError``: the service gave no token
    - ``SealedValueUnreadable``: no key of ``ENCRYPTION_KEYS`` opens the stored token
    - ``RuntimeError``: a refresh inside a transaction, whose rollback would lose the new tokens
    """
    return tokens.access_token_for(identity, rejected=rejected)


@boundary
def erase_account(user: AbstractBaseUser) -> ErasureReceipt:
    """Erase the account of ``user`` with its identity, for the person or an operator.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is tried again. Afterwards ``user`` must not be saved: the instance has what was
    erased.

    Raises:

    - ``ValueError``: ``user`` is no stored account
    """
    return erasure.erase_account(user)


@boundary
def receive_event(body: bytes, *, signature: str) -> None:
    """Check, store, apply and log one delivery. After this call the effect is committed.

    Raises:

    - ``EventRefused``: the signature or the content is wrong, or a withdrawal names nobody
    - ``RuntimeError``: inside a transaction, whose rollback would lose the event
    """
    events.receive(body, signature=signature)
