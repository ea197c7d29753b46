"""Every error a site can catch.

::

    IdentityError
    ├── ConfigurationError                 the setting is wrong (also django's ImproperlyConfigured)
    │   └── PlainHttpRefused               a page of a live application was asked for without TLS
    ├── FlowError                          the person's way through the browser went astray
    │   ├── CallbackInvalid                a callback that the service never sends
    │   ├── RequestUnknown                 no such sign-in was started in this browser
    │   ├── RequestExpired                 it was started too long ago
    │   ├── RequestUsed                    it was already completed, or failed half-way
    │   ├── UserChanged                    another user is signed in now than when it started
    │   ├── ConnectCodeMalformed           no Connect code in what was handed in
    │   ├── ConnectSignInNeeded            a Connect code, and nobody is signed in
    │   ├── ConnectCodeInUse               the same code is being redeemed now
    │   ├── ConnectCodeUsed                the same code was handed in here before
    │   ├── TooManyTries                   too many Connect codes in a short time
    │   ├── AccessDenied                   the person said no at the service
    │   └── AuthorizationRefused           the service said no before it asked
    ├── LinkingRefused                     the subject and the site user may not be joined
    │   ├── SubjectTaken                   the subject belongs to another user
    │   ├── UserHoldsAnother               the user already has another subject
    │   ├── SubjectChanged                 a renewal came back as somebody else
    │   ├── EmailTaken                     the address belongs to another account
    │   ├── SignUpRefused                  the site takes no new user
    │   ├── ConnectAnswerRefused           the policy does not take a Connect answer
    │   ├── UserInactive                   the site's account is disabled
    │   └── ConsentWithdrawn               consent was revoked while the flow was on its way
    ├── ServiceError                       the service did not answer as the spec says
    │   ├── ServiceUnavailable             no connection, or a 5xx
    │   │   ├── ServiceTimeout             no answer in time
    │   │   ├── KeysUnavailable            no current key set
    │   │   ├── RefreshPending             a refresh is on its way, or was not answered a moment ago
    │   │   ├── ServiceAway                the last calls failed, so none is made for a while
    │   │   └── BudgetSpent                the calls allowed for now are spent
    │   ├── RateLimited                    429
    │   ├── MalformedAnswer                unreadable, of the wrong types
    │   │   ├── AnswerTooLarge             over the limit
    │   │   ├── UnexpectedRedirect         any 3xx
    │   │   └── SubjectMismatch            the answer is about somebody else
    │   ├── ConnectOutcomeUnknown          a Connect code was sent, and is spent or not
    │   └── ServiceRefusal                 a well-formed no; keeps the service's code
    │       ├── InvalidGrant               the authorization code or refresh token is dead
    │       ├── AccessTokenRejected        401 on a user-data endpoint
    │       ├── AccessForbidden            403 on a user-data endpoint
    │       ├── InvalidConnectCode         the code is unknown, used or expired
    │       ├── ConnectCodeRequired        the service found no code in the request
    │       ├── ClientRejected             401 on a Connect request
    │       ├── VerificationPolicyNotMet   the person lacks a verification; see ``kyc_url``
    │       └── EnvironmentMismatch        test credentials and a live user, or the reverse
    ├── EventRefused                       a webhook delivery that is not taken in
    │   ├── SignatureInvalid               its signature does not fit its body
    │   └── EventUnreadable                signed, and yet not an event
    ├── StorageUnavailable                 the database did not answer
    ├── CredentialRejected                 a credential failed a check; see ``reason``
    ├── NoCredential                       there is none to look at
    ├── DocumentUnreadable                 no key of DOCUMENT_KEYS opens an encrypted document
    ├── ReauthorizationNeeded              the grant is dead or gone; the person has to come again
    └── SealedValueUnreadable              no key of ENCRYPTION_KEYS opens a stored value

Messages hold codes and endpoint names, never what the service or a person sent.
"""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_identity.credentials.reasons import RejectionReason

__all__ = [
    "AccessDenied",
    "AccessForbidden",
    "AccessTokenRejected",
    "AnswerTooLarge",
    "AuthorizationRefused",
    "BudgetSpent",
    "CallbackInvalid",
    "ClientRejected",
    "ConfigurationError",
    "ConnectAnswerRefused",
    "ConnectCodeInUse",
    "ConnectCodeMalformed",
    "ConnectCodeRequired",
    "ConnectCodeUsed",
    "ConnectOutcomeUnknown",
    "ConnectSignInNeeded",
    "ConsentWithdrawn",
    "CredentialRejected",
    "DocumentUnreadable",
    "EmailTaken",
    "EnvironmentMismatch",
    "EventRefused",
    "EventUnreadable",
    "FlowError",
    "IdentityError",
    "InvalidConnectCode",
    "InvalidGrant",
    "KeysUnavailable",
    "LinkingRefused",
    "MalformedAnswer",
    "NoCredential",
    "PlainHttpRefused",
    "RateLimited",
    "ReauthorizationNeeded",
    "Recovery",
    "RefreshPending",
    "RequestExpired",
    "RequestUnknown",
    "RequestUsed",
    "SealedValueUnreadable",
    "ServiceAway",
    "ServiceError",
    "ServiceRefusal",
    "ServiceTimeout",
    "ServiceUnavailable",
    "SignUpRefused",
    "SignatureInvalid",
    "Stage",
    "StorageUnavailable",
    "SubjectChanged",
    "SubjectMismatch",
    "SubjectTaken",
    "TooManyTries",
    "UnexpectedRedirect",
    "UserChanged",
    "UserHoldsAnother",
    "UserInactive",
    "VerificationPolicyNotMet",
    "shaped_code",
]

SERVICE_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Stage(StrEnum):
    """Where in the life of an identity something failed."""

    CONFIGURATION = "configuration"
    AUTHORIZATION = "authorization"
    CONNECT = "connect"
    TOKEN = "token"  # noqa: S105  a stage's name
    SERVICE = "service"
    CREDENTIAL = "credential"
    LINKING = "linking"
    EVENT = "event"
    STORAGE = "storage"


class Recovery(StrEnum):
    """What the person can do next."""

    RETRY = "retry"
    RESTART = "restart"
    SIGN_IN_TO_LINK = "sign_in_to_link"
    VERIFY = "verify"
    CONTACT = "contact"


class IdentityError(Exception):
    """The root: ``except IdentityError`` catches everything this package raises on purpose.

    ``detail`` is for developers and logs, without secrets and persons; ``public_message`` is for
    the person; ``reference`` stands on the page and in the one log line; ``next_url`` is where the
    person wanted to go, if that is known; ``http_status`` is that of a response which tells of it.
    """

    code: ClassVar[str] = "identity_error"
    http_status: ClassVar[int] = 502
    stage: ClassVar[Stage] = Stage.SERVICE
    recovery: ClassVar[Recovery] = Recovery.RETRY
    public_message: ClassVar[str | Promise] = _("Something went wrong. Please try again.")
    next_url: str = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.code)
        self.detail = detail
        self.reference = secrets.token_hex(4)


class ConfigurationError(IdentityError, ImproperlyConfigured):
    code = "configuration"
    http_status = 500
    stage = Stage.CONFIGURATION
    recovery = Recovery.CONTACT
    public_message = _("Sign-in is not set up correctly. Please tell the site's operators.")


class PlainHttpRefused(ConfigurationError):
    code = "plain_http_refused"
    http_status = 403
    public_message = _("This page can only be opened over a secure connection (https).")


def shaped_code(text: object) -> str:
    """``text`` if it looks like an error code, else empty: foreign text is never quoted."""
    return text if isinstance(text, str) and SERVICE_CODE.fullmatch(text) else ""


# The person's way through the browser, and who they may become here.


class FlowError(IdentityError):
    code = "flow_error"
    http_status = 400
    stage = Stage.AUTHORIZATION
    recovery = Recovery.RESTART


class CallbackInvalid(FlowError):
    code = "callback_invalid"
    public_message = _("That address is not one the identity service sends. Please start again.")


class RequestUnknown(FlowError):
    code = "request_unknown"
    public_message = _("This sign-in was not started in this browser. Please start again.")


class RequestExpired(FlowError):
    code = "request_expired"
    public_message = _("This sign-in took longer than it may. Please start again.")


class RequestUsed(FlowError):
    code = "request_used"
    public_message = _("This sign-in was already used once. Please start again.")


class UserChanged(FlowError):
    code = "user_changed"
    public_message = _("Somebody else is signed in here by now. Please start again.")


class AccessDenied(FlowError):
    code = "access_denied"
    public_message = _("You chose not to share your data, so nothing was changed.")


class AuthorizationRefused(FlowError):
    """An ``error`` other than ``access_denied`` (RFC 6749 §4.1.2.1)."""

    code = "authorization_refused"
    public_message = _("The identity service could not let you in. Please start again.")


class LinkingRefused(IdentityError):
    code = "linking_refused"
    http_status = 403
    stage = Stage.LINKING
    recovery = Recovery.CONTACT


class SubjectTaken(LinkingRefused):
    code = "subject_taken"
    public_message = _("This identity is already linked to another account on this site.")


class UserHoldsAnother(LinkingRefused):
    code = "user_holds_another"
    public_message = _("Your account is linked to another identity. Disconnect it first.")


class SubjectChanged(LinkingRefused):
    code = "subject_changed"
    recovery = Recovery.RESTART
    public_message = _("You came back as somebody else than before. Please start again.")


class EmailTaken(LinkingRefused):
    code = "email_taken"
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("An account with your e-mail address already exists here.")


class SignUpRefused(LinkingRefused):
    code = "sign_up_refused"
    public_message = _("This site is not taking new accounts in this way.")


class UserInactive(LinkingRefused):
    code = "user_inactive"
    public_message = _("Your account on this site is disabled.")


class ConsentWithdrawn(LinkingRefused):
    code = "consent_withdrawn"
    recovery = Recovery.RESTART
    public_message = _("Your consent was revoked while you were signing in.")


# What the service answers.


class ServiceError(IdentityError):
    """The service did not answer as the spec says. ``endpoint`` is its name, never an address.

    ``may_have_arrived``: whether the service may have read the request all the same.
    """

    may_have_arrived: bool = True
    code = "service_error"
    stage = Stage.SERVICE
    public_message = _("The identity service gave an answer that this site cannot use.")

    def __init__(self, detail: str = "", *, endpoint: str = "") -> None:
        super().__init__(f"{endpoint}: {detail}" if endpoint else detail)
        self.endpoint = endpoint


class ServiceUnavailable(ServiceError):
    code = "service_unavailable"
    http_status = 503
    public_message = _("The identity service cannot be reached at the moment.")


class ServiceTimeout(ServiceUnavailable):
    code = "service_timeout"
    public_message = _("The identity service took too long to answer.")


class KeysUnavailable(ServiceUnavailable):
    code = "keys_unavailable"


class RateLimited(ServiceError):
    """``retry_after``: seconds until the service takes calls again."""

    code = "rate_limited"
    public_message = _("The identity service is busy. Please try again in a moment.")

    def __init__(self, detail: str = "", *, endpoint: str = "", retry_after: float = 0.0) -> None:
        super().__init__(detail, endpoint=endpoint)
        self.retry_after = retry_after


class MalformedAnswer(ServiceError):
    code = "malformed_answer"


class AnswerTooLarge(MalformedAnswer):
    code = "answer_too_large"


class UnexpectedRedirect(MalformedAnswer):
    code = "unexpected_redirect"


class SubjectMismatch(MalformedAnswer):
    code = "subject_mismatch"
    public_message = _("The identity service answered about somebody else.")


class ServiceRefusal(ServiceError):
    """A well-formed no. ``service_code`` is the service's own code, ``status`` its HTTP status."""

    code = "service_refusal"
    public_message = _("The identity service refused. Please start again.")
    recovery = Recovery.RESTART

    def __init__(
        self, detail: str = "", *, endpoint: str = "", service_code: str = "", status: int = 0
    ) -> None:
        self.service_code = shaped_code(service_code)
        self.status = status
        described = detail or f"refused with {self.service_code or 'no code'} (HTTP {status})"
        super().__init__(described, endpoint=endpoint)


class InvalidGrant(ServiceRefusal):
    code = "invalid_grant"
    stage = Stage.TOKEN


class AccessTokenRejected(ServiceRefusal):
    code = "access_token_rejected"


class AccessForbidden(ServiceRefusal):
    code = "access_forbidden"


class EnvironmentMismatch(ServiceRefusal):
    code = "environment_mismatch"
    recovery = Recovery.CONTACT
    public_message = _("This site and your identity are not both live, or both for tests.")


# Connect codes.


class ConnectCodeMalformed(FlowError):
    """What was handed in holds no code, or more than one. Nothing was sent."""

    code = "connect_code_malformed"
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("That is not a code. A code looks like CNX-XXXX-XXXX; paste it once.")


class ConnectSignInNeeded(FlowError):
    """Nobody is signed in, and the policy takes no codes from strangers. Nothing was sent."""

    code = "connect_sign_in_needed"
    http_status = 403
    stage = Stage.CONNECT
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("Sign in first: a code verifies the account that you are signed in to.")


class ConnectCodeInUse(FlowError):
    code = "connect_code_in_use"
    http_status = 409
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("This code is being redeemed at this moment. Look at your account.")


class ConnectCodeUsed(FlowError):
    code = "connect_code_used"
    http_status = 409
    stage = Stage.CONNECT
    public_message = _("This code was handed in here before. A code works once.")


class TooManyTries(FlowError):
    """``retry_after``: seconds until the next code is taken. Nothing was sent."""

    code = "too_many_tries"
    http_status = 429
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("Too many codes were entered in a short time.")

    def __init__(self, detail: str = "", *, retry_after: int = 0) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class ConnectAnswerRefused(LinkingRefused):
    """The site's policy does not take the service's answer."""

    code = "connect_answer_refused"
    public_message = _("This site does not accept what the identity service said about you.")


class ConnectOutcomeUnknown(ServiceError):
    """The request left and no answer came that says what became of the code: it counts as spent."""

    code = "connect_outcome_unknown"
    stage = Stage.CONNECT
    recovery = Recovery.RESTART
    public_message = _("The identity service did not say whether it took your code.")


class InvalidConnectCode(ServiceRefusal):
    code = "invalid_connect_code"
    http_status = 400
    stage = Stage.CONNECT
    public_message = _("The identity service does not know this code, or it was used or ran out.")


class ConnectCodeRequired(ServiceRefusal):
    """The service took the request for one of the retired form."""

    code = "connect_code_required"
    stage = Stage.CONNECT
    recovery = Recovery.CONTACT
    public_message = _("The identity service did not find the code in this site's request.")


class ClientRejected(ServiceRefusal):
    """The service does not know the application's credentials."""

    code = "client_rejected"
    recovery = Recovery.CONTACT
    public_message = _("The identity service does not know this site's credentials.")


class VerificationPolicyNotMet(ServiceRefusal):
    """The person lacks what the application requires. ``kyc_url``: where they get it, if known."""

    code = "verification_policy_not_met"
    http_status = 403
    stage = Stage.CONNECT
    recovery = Recovery.VERIFY
    public_message = _("This site needs a verification that you do not have yet.")

    def __init__(
        self,
        detail: str = "",
        *,
        endpoint: str = "",
        service_code: str = "",
        status: int = 0,
        kyc_url: str = "",
    ) -> None:
        super().__init__(detail, endpoint=endpoint, service_code=service_code, status=status)
        self.kyc_url = kyc_url


# Upkeep and the grant.


class ReauthorizationNeeded(IdentityError):
    """There is no token to be had: the person has to go through the service once more."""

    code = "reauthorization_needed"
    stage = Stage.TOKEN
    recovery = Recovery.RESTART
    public_message = _("Your permission has run out. Please sign in with identity once more.")


class RefreshPending(ServiceUnavailable):
    """The refresh token was sent a moment ago and no answer is known yet; nothing was sent now."""

    may_have_arrived = False
    code = "refresh_pending"


class ServiceAway(ServiceUnavailable):
    """The last calls of all workers failed, so this one was not made."""

    may_have_arrived = False
    code = "service_away"


class BudgetSpent(ServiceUnavailable):
    """The calls that all workers may make together are spent for now; this one was not made."""

    may_have_arrived = False
    code = "budget_spent"


# Credentials and documents.


class CredentialRejected(IdentityError):
    """A credential failed a check. ``reason`` says which, from a closed enum."""

    code = "credential_rejected"
    stage = Stage.CREDENTIAL
    public_message = _("The identity service sent a proof that this site could not verify.")

    def __init__(self, reason: RejectionReason) -> None:
        super().__init__(reason.value)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CredentialRejected], tuple[RejectionReason]]:
        return type(self), (self.reason,)


class NoCredential(IdentityError):
    """There is no credential to look at: none came, or it went with the consent."""

    code = "no_credential"
    stage = Stage.CREDENTIAL
    recovery = Recovery.RESTART


class DocumentUnreadable(IdentityError):
    """An encrypted document that none of ``DOCUMENT_KEYS`` opens, or that is none."""

    code = "document_unreadable"
    stage = Stage.CREDENTIAL
    recovery = Recovery.CONTACT


class SealedValueUnreadable(IdentityError):
    code = "sealed_value_unreadable"
    stage = Stage.STORAGE
    recovery = Recovery.RESTART


# Webhook deliveries.


class EventRefused(IdentityError):
    """A delivery that is not taken in; delivering the same again changes nothing."""

    code = "event_refused"
    stage = Stage.EVENT
    recovery = Recovery.CONTACT


class SignatureInvalid(EventRefused):
    code = "signature_invalid"
    http_status = 401
    public_message = _("The signature does not fit the body.")


class EventUnreadable(EventRefused):
    """Signed, and yet not an event. The body's SHA-256 digest is all that is kept of it."""

    code = "event_unreadable"
    http_status = 400
    public_message = _("The body is not an event.")

    def __init__(self, detail: str = "", *, body_digest: str = "") -> None:
        super().__init__(f"{detail} (body {body_digest})" if body_digest else detail)
        self.body_digest = body_digest


class StorageUnavailable(IdentityError):
    """The database did not answer, or found no order for us; deliver it again."""

    code = "storage_unavailable"
    http_status = 503
    stage = Stage.STORAGE
    public_message = _("This site cannot store anything at the moment.")
