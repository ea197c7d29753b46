"""Every error a site can catch.

::

    IdentityError
    ├── ConfigurationError                 the setting is wrong (also django's ImproperlyConfigured)
    │   └── PlainHttpRefused               a page of a live application was requested without TLS
    ├── FlowError                          a sign-in or a Connect code failed in the browser
    │   ├── CallbackInvalid                the callback has parameters that the service never sends
    │   ├── RequestUnknown                 no such sign-in was started in this browser
    │   ├── RequestExpired                 the sign-in was started too long ago
    │   ├── RequestUsed                    the sign-in was already completed or has failed
    │   ├── FormExpired                    the form has no valid CSRF token
    │   ├── UserChanged                    another user is signed in now than at the start
    │   ├── SessionEnded                   the session that started the sign-in has ended
    │   ├── ConnectCodeMalformed           the text contains no Connect code, or several
    │   ├── ConnectSignInNeeded            a Connect code, but nobody is signed in
    │   ├── ConnectCodeInUse               another request redeems the same code now
    │   ├── ConnectCodeUsed                the same code was entered on this site before
    │   ├── TooManyTries                   too many Connect codes in a short time
    │   ├── TooManyStarts                  too many started sign-ins in a short time
    │   ├── AccessDenied                   the person denied the consent at the service
    │   └── AuthorizationRefused           the service refused without asking the person
    ├── LinkingRefused                     the subject may not be linked to the site's user
    │   ├── SubjectTaken                   the subject belongs to another user
    │   ├── UserHoldsAnother               the user already has another subject
    │   ├── LinkedByCode                   only a Connect code linked the subject: no sign-in
    │   ├── LinkNotAllowed                 the policy refuses to link this user
    │   ├── SignInNotAllowed               the policy refuses to sign this user in
    │   ├── SubjectChanged                 the person renewed as another subject
    │   ├── EmailTaken                     the e-mail address belongs to another account
    │   │   └── EmailHeldByIdentity        only another identity opens that account
    │   ├── SignUpRefused                  the policy refuses the new user
    │   │   └── UserFieldsRefused          the user model refuses a field of the new user
    │   ├── ConnectAnswerRefused           the policy refuses a Connect answer
    │   ├── UserInactive                   the site's account is disabled
    │   └── ConsentWithdrawn               the consent was revoked during the sign-in
    ├── ServiceError                       the service did not answer as the spec says
    │   ├── ServiceUnavailable             no connection, or a 5xx
    │   │   ├── ServiceTimeout             no answer in time
    │   │   ├── KeysUnavailable            no current key set
    │   │   ├── RefreshPending             another refresh is running, or one just had no answer
    │   │   ├── ServiceAway                the last calls failed, so calls are paused
    │   │   └── BudgetSpent                the rate limit is reached
    │   ├── RateLimited                    429
    │   ├── MalformedAnswer                unreadable, or with members of wrong types
    │   │   ├── AnswerTooLarge             larger than the limit
    │   │   ├── UnexpectedRedirect         any 3xx
    │   │   ├── SubjectMismatch            the answer is about another subject
    │   │   └── SubjectUnknown             no answer names the person
    │   ├── ConnectOutcomeUnknown          a Connect code was sent, but its result is unknown
    │   └── ServiceRefusal                 a well-formed error answer; keeps the service's code
    │       ├── InvalidGrant               the authorization code or refresh token is invalid
    │       ├── AccessTokenRejected        401 on a user-data endpoint
    │       ├── AccessForbidden            403 on a user-data endpoint
    │       ├── InvalidConnectCode         the code is unknown, used or expired
    │       ├── ConnectCodeRequired        the service found no code in the request
    │       ├── ClientRejected             401 on a Connect request
    │       ├── VerificationPolicyNotMet   the person lacks a verification; see ``kyc_url``
    │       └── EnvironmentMismatch        test credentials and a live user, or the reverse
    ├── EventRefused                       a webhook delivery that is not stored
    │   ├── SignatureInvalid               the signature does not match the body
    │   ├── EventUnreadable                the signature is valid, but the body is not an event
    │   └── EventConflict                  another body has the same event id
    ├── StorageUnavailable                 the database did not answer
    ├── CredentialRejected                 a credential failed a check; see ``reason``
    ├── NoCredential                       no credential is stored
    ├── DocumentUnreadable                 no key opens the document, or it has another type
    ├── DocumentsNotAllowed                the policy, consent or scopes do not cover them
    ├── ReauthorizationNeeded              the grant is dead; the person must sign in again
    └── SealedValueUnreadable              no key of ENCRYPTION_KEYS decrypts a stored value

Messages contain codes and endpoint names, never data of the service or of a person.
"""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_identity.credentials.reasons import RejectionReason

SERVICE_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Stage(StrEnum):
    """The part of the package in which something failed."""

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
    """The base class: ``except IdentityError`` catches every error that this package raises.

    - ``detail``: for developers and logs, without secrets and personal data.
    - ``public_message``: for the person.
    - ``reference``: an id that the page and the log line both show.
    - ``next_url``: the page that the person wanted, if known.
    - ``http_status``: the status of the response.
    - ``retry_after``: the seconds until another try can succeed, if known, else zero.
    """

    code: ClassVar[str] = "identity_error"
    http_status: ClassVar[int] = 502
    stage: ClassVar[Stage] = Stage.SERVICE
    recovery: ClassVar[Recovery] = Recovery.RETRY
    public_message: ClassVar[str | Promise] = _("Something went wrong. Please try again.")
    next_url: str = ""

    def __init__(self, detail: str = "", *, retry_after: float = 0) -> None:
        super().__init__(detail or self.code)
        self.detail, self.retry_after = detail, retry_after
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
    """``text`` if it looks like an error code, else an empty text. Other text is never quoted."""
    return text if isinstance(text, str) and SERVICE_CODE.fullmatch(text) else ""


# Sign-in and linking.


class FlowError(IdentityError):
    code = "flow_error"
    http_status = 400
    stage = Stage.AUTHORIZATION
    recovery = Recovery.RESTART


class CallbackInvalid(FlowError):
    code = "callback_invalid"
    public_message = _("This link is incomplete. Please start again.")


class RequestUnknown(FlowError):
    code = "request_unknown"
    public_message = _(
        "You started in another browser, or your cookies were cleared. Please start again."
    )


class RequestExpired(FlowError):
    code = "request_expired"
    public_message = _("This took too long. Please start again.")


class RequestUsed(FlowError):
    code = "request_used"
    public_message = _("This sign-in was already used once. Please start again.")


class FormExpired(FlowError):
    code = "form_expired"
    http_status = 403
    public_message = _("This page was open too long. Please start again.")


class UserChanged(FlowError):
    code = "user_changed"
    public_message = _("Another account is signed in here now, or none. Please start again.")


class SessionEnded(FlowError):
    code = "session_ended"
    public_message = _("Your session on this site has ended. Please sign in again.")


class AccessDenied(FlowError):
    code = "access_denied"
    public_message = _("You did not share anything, so nothing was changed.")


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


class LinkedByCode(LinkingRefused):
    code = "linked_by_code"
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("A code linked this identity to an account here. It does not sign you in.")


class LinkNotAllowed(LinkingRefused):
    code = "link_not_allowed"
    public_message = _("Your account on this site may not be linked in this way.")


class SignInNotAllowed(LinkingRefused):
    code = "sign_in_not_allowed"
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("Your account on this site may not be signed in to in this way.")


class SubjectChanged(LinkingRefused):
    code = "subject_changed"
    recovery = Recovery.RESTART
    public_message = _("You used a different account from the one connected here.")


class EmailTaken(LinkingRefused):
    code = "email_taken"
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("An account with your e-mail address already exists here.")


class EmailHeldByIdentity(EmailTaken):
    code = "email_held_by_identity"
    recovery = Recovery.RESTART
    public_message = _("Another identity opens the account with your e-mail address here.")


class SignUpRefused(LinkingRefused):
    code = "sign_up_refused"
    public_message = _("This site is not taking new accounts in this way.")


class UserFieldsRefused(SignUpRefused):
    """The user model's validation refuses a field. ``detail`` names the field, not its value."""

    code = "user_fields_refused"
    public_message = _("This site cannot create an account from what the identity service says.")


class UserInactive(LinkingRefused):
    code = "user_inactive"
    public_message = _("Your account on this site is disabled.")


class ConsentWithdrawn(LinkingRefused):
    code = "consent_withdrawn"
    recovery = Recovery.RESTART
    public_message = _("Your consent was revoked while you were signing in.")


# Answers of the service.


class ServiceError(IdentityError):
    """The service did not answer as the spec says. ``endpoint`` is a name, never an address.

    ``may_have_arrived``: whether the service may have received the request.
    """

    may_have_arrived: bool = True
    code = "service_error"
    public_message = _("The identity service gave an answer that this site cannot use.")

    def __init__(self, detail: str = "", *, endpoint: str = "", retry_after: float = 0) -> None:
        super().__init__(f"{endpoint}: {detail}" if endpoint else detail, retry_after=retry_after)
        self.endpoint = endpoint


class ServiceUnavailable(ServiceError):
    """``network_error``: the class of the error below, if no answer came at all."""

    network_error: str = ""
    code = "service_unavailable"
    http_status = 503
    public_message = _("The identity service cannot be reached at the moment.")


class ServiceTimeout(ServiceUnavailable):
    code = "service_timeout"
    public_message = _("The identity service took too long to answer.")


class KeysUnavailable(ServiceUnavailable):
    code = "keys_unavailable"


class RateLimited(ServiceError):
    code = "rate_limited"
    http_status = 503
    public_message = _("The identity service is busy. Please try again in a moment.")


class MalformedAnswer(ServiceError):
    code = "malformed_answer"


class AnswerTooLarge(MalformedAnswer):
    code = "answer_too_large"


class UnexpectedRedirect(MalformedAnswer):
    code = "unexpected_redirect"


class SubjectMismatch(MalformedAnswer):
    code = "subject_mismatch"
    public_message = _("The identity service answered about somebody else.")


class SubjectUnknown(MalformedAnswer):
    code = "subject_unknown"
    recovery = Recovery.CONTACT
    public_message = _("The identity service did not say who you are.")


class ServiceRefusal(ServiceError):
    """A well-formed error answer with the service's code (``service_code``) and HTTP status."""

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
    http_status = 400
    stage = Stage.TOKEN


class AccessTokenRejected(ServiceRefusal):
    code = "access_token_rejected"


class AccessForbidden(ServiceRefusal):
    code = "access_forbidden"


class EnvironmentMismatch(ServiceRefusal):
    code = "environment_mismatch"
    recovery = Recovery.CONTACT
    public_message = _("You used a test account on a live site, or the reverse.")


# Connect codes.


class ConnectCodeMalformed(FlowError):
    code = "connect_code_malformed"
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("Enter a code like CNX-XXXX-XXXX.")


class ConnectSignInNeeded(FlowError):
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
    """``most`` codes were entered in ``retry_after`` seconds. Nothing was sent."""

    code = "too_many_tries"
    http_status = 429
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("Too many codes were entered in a short time.")

    def __init__(self, detail: str = "", *, retry_after: int = 0, most: int = 0) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.most = most


class TooManyStarts(FlowError):
    code = "too_many_starts"
    http_status = 429
    recovery = Recovery.RETRY
    public_message = _("Too many sign-ins were started from here. Please wait ten minutes.")


class ConnectAnswerRefused(LinkingRefused):
    code = "connect_answer_refused"
    public_message = _("This site does not accept what the identity service said about you.")


class ConnectOutcomeUnknown(ServiceError):
    """The code was sent, and no answer told the result. The code counts as spent."""

    code = "connect_outcome_unknown"
    stage = Stage.CONNECT
    recovery = Recovery.RESTART
    public_message = _("The identity service did not say whether it took your code.")


class InvalidConnectCode(ServiceRefusal):
    code = "invalid_connect_code"
    http_status = 400
    stage = Stage.CONNECT
    public_message = _("This code is wrong, used or older than 10 minutes. Make a new one.")


class ConnectCodeRequired(ServiceRefusal):
    code = "connect_code_required"
    stage = Stage.CONNECT
    recovery = Recovery.CONTACT
    public_message = _("The identity service did not find the code in this site's request.")


class ClientRejected(ServiceRefusal):
    code = "client_rejected"
    recovery = Recovery.CONTACT
    public_message = _("The identity service does not know this site's credentials.")


class VerificationPolicyNotMet(ServiceRefusal):
    """The person lacks a required verification. ``kyc_url``: where they get it, if known."""

    code = "verification_policy_not_met"
    http_status = 403
    stage = Stage.CONNECT
    recovery = Recovery.VERIFY
    public_message = _("This site needs a verification that you do not have yet.")

    def __init__(self, detail: str = "", *, kyc_url: str = "", **refusal: Any) -> None:
        super().__init__(detail, **refusal)
        self.kyc_url = kyc_url


# Upkeep and the grant.


class ReauthorizationNeeded(IdentityError):
    code = "reauthorization_needed"
    stage = Stage.TOKEN
    recovery = Recovery.RESTART
    public_message = _("Your permission has ended. Please sign in again.")


class RefreshPending(ServiceUnavailable):
    """The refresh token was just sent and has no answer yet. Nothing was sent now."""

    may_have_arrived = False
    code = "refresh_pending"


class ServiceAway(ServiceUnavailable):
    may_have_arrived = False
    code = "service_away"


class BudgetSpent(ServiceUnavailable):
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
    code = "no_credential"
    stage = Stage.CREDENTIAL
    recovery = Recovery.RESTART


class DocumentUnreadable(IdentityError):
    code = "document_unreadable"
    stage = Stage.CREDENTIAL
    recovery = Recovery.CONTACT


class DocumentsNotAllowed(IdentityError, PermissionDenied):
    code = "documents_not_allowed"
    http_status = 403
    stage = Stage.CREDENTIAL
    recovery = Recovery.CONTACT
    public_message = _("These documents are not shared with this site.")


class SealedValueUnreadable(IdentityError):
    code = "sealed_value_unreadable"
    stage = Stage.STORAGE
    recovery = Recovery.RESTART


# Webhook deliveries.


class EventRefused(IdentityError):
    """A delivery that is not stored. Delivering the same again does not help."""

    code = "event_refused"
    stage = Stage.EVENT
    recovery = Recovery.CONTACT


class SignatureInvalid(EventRefused):
    code = "signature_invalid"
    http_status = 401
    public_message = _("The signature does not fit the body.")


class EventUnreadable(EventRefused):
    """The signature is valid but the body is not an event. Only its SHA-256 digest is logged."""

    code = "event_unreadable"
    http_status = 400
    public_message = _("The body is not an event.")

    def __init__(self, detail: str = "", *, body_digest: str = "") -> None:
        super().__init__(f"{detail} (body {body_digest})" if body_digest else detail)
        self.body_digest = body_digest


class EventConflict(EventRefused):
    code = "event_conflict"
    http_status = 409
    public_message = _("Another event has this id.")


class StorageUnavailable(IdentityError):
    """The database did not answer or reported a deadlock. The service must deliver again."""

    code = "storage_unavailable"
    http_status = 503
    stage = Stage.STORAGE
    public_message = _("This site cannot store anything at the moment.")
