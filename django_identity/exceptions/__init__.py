"""Every error a site can catch.

::

    IdentityError
    ├── ConfigurationError                 the setting is wrong (also django's ImproperlyConfigured)
    ├── FlowError                          a sign-in or a Connect code failed in the browser
    ├── LinkingRefused                     the subject may not be linked to the site's user
    │   ├── EmailTaken                     the e-mail address belongs to another account
    │   └── NoOtherWayIn                   the identity is the account's only way in
    ├── ServiceError                       the service did not answer as the spec says
    │   ├── ServiceUnavailable             no connection, or no answer of the service
    │   │   ├── KeysUnavailable            no current key set
    │   │   └── RefreshPending             another refresh is running, or one just had no answer
    │   ├── RateLimited                    429
    │   ├── MalformedAnswer                unreadable, or with members of wrong types
    │   │   └── SubjectMismatch            the answer is about another subject
    │   └── ServiceRefusal                 a well-formed error answer; keeps the service's code
    │       ├── InvalidGrant               the authorization code or refresh token is invalid
    │       ├── AccessTokenRejected        401 on a user-data endpoint
    │       ├── InvalidConnectCode         the code is unknown, used or expired
    │       ├── ClientRejected             the service knows no such client, or another secret
    │       ├── VerificationPolicyNotMet   the person lacks a verification; see ``kyc_url``
    │       └── EnvironmentMismatch        test credentials and a live user, or the reverse
    ├── EventRefused                       a webhook delivery that is not acknowledged
    ├── StorageUnavailable                 the database did not answer
    ├── UnexpectedError                    the site's own code raised an error, or ours did
    ├── CredentialRejected                 a credential failed a check; see ``reason``
    ├── DocumentUnreadable                 no key opens the document, or it has another type
    ├── DocumentsNotAllowed                the policy, consent or scopes do not cover them
    ├── ReauthorizationNeeded              the grant is dead; the person must sign in again
    └── SealedValueUnreadable              no key of ENCRYPTION_KEYS decrypts a stored value

``code`` says which error it is: ``table`` has a row for each. Messages contain codes and
endpoint names alone, so data of persons stays out.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

from django.core.exceptions import ImproperlyConfigured, PermissionDenied

from django_identity.exceptions.rejections import RejectionReason
from django_identity.exceptions.table import ERRORS
from django_identity.exceptions.table import Recovery as Recovery

# The seconds that a person is asked to wait for a busy service.
LONGEST_WAIT = 60.0
SERVICE_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def shaped_code(text: object) -> str:
    """``text`` if it looks like an error code, else an empty text. Only such text is quoted."""
    if isinstance(text, str) and SERVICE_CODE.fullmatch(text):
        return text
    return ""


def new_reference() -> str:
    """What an operator searches the log for."""
    return secrets.token_hex(4)


class IdentityError(Exception):
    """The base class: ``except IdentityError`` catches every error that this package raises.

    - ``code``: which error it is. Each class has one, and a raised error may have an exacter one.
    - ``detail``: for developers and logs, free of secrets and personal data.
    - ``reference``: an id that the page and the log line both show.
    - ``request_id``: the service's own id of a Connect request, if it answered with one.
    - ``next_url``: the page that the person wanted, if known.
    - ``retry_after``: the seconds until another try can succeed, if known, else zero.
    """

    code: str = "identity_error"
    request_id: str = ""

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "",
        next_url: str = "",
        retry_after: float = 0,
    ) -> None:
        if code:
            self.code = code
        super().__init__(detail or self.code)
        self.detail = detail
        self.next_url = next_url
        self.retry_after = retry_after
        self.reference = new_reference()

    @property
    def http_status(self) -> int:
        """The status of the response."""
        return ERRORS[self.code].status

    @property
    def recovery(self) -> Recovery:
        """What the person can do next."""
        return ERRORS[self.code].recovery


class ConfigurationError(IdentityError, ImproperlyConfigured):
    code = "configuration"


# Sign-in and linking.


class FlowError(IdentityError):
    code = "flow_error"


class LinkingRefused(IdentityError):
    code = "linking_refused"


class EmailTaken(LinkingRefused):
    """``masked``: the address as its owner recognises it, such as ``a***@example.org``."""

    masked: str = ""
    code = "email_taken"


class NoOtherWayIn(LinkingRefused):
    code = "no_other_way_in"


# Answers of the service.


class ServiceError(IdentityError):
    """The service did not answer as the spec says. ``endpoint`` is a name, never an address.

    ``may_have_arrived``: whether the service may have received the request.
    """

    may_have_arrived: bool = True
    code = "service_error"

    def __init__(self, detail: str = "", *, endpoint: str = "", **more: Any) -> None:
        if endpoint:
            detail = f"{endpoint}: {detail}"
        super().__init__(detail, **more)
        self.endpoint = endpoint


class ServiceUnavailable(ServiceError):
    """``network_error``: the class of the error below, if the answer is missing.

    ``status``: the HTTP status of somebody else's answer, such as a proxy's.
    """

    network_error: str = ""
    status: int = 0
    code = "service_unavailable"

    @classmethod
    def of_status(
        cls,
        status: int,
        detail: str = "",
        *,
        endpoint: str,
    ) -> ServiceUnavailable:
        """The error for an answer with this status, of which nothing else can be used."""
        error = cls(f"HTTP {status} {detail}".strip(), endpoint=endpoint)
        error.status = status
        return error


class KeysUnavailable(ServiceUnavailable):
    code = "keys_unavailable"


class RefreshPending(ServiceUnavailable):
    """The refresh token was just sent, and its answer is still to come. Nothing was sent now."""

    may_have_arrived = False
    code = "refresh_pending"


class RateLimited(ServiceError):
    """``pause``: the seconds that the service asked for. A person waits a minute at most."""

    code = "rate_limited"

    def __init__(
        self,
        detail: str = "",
        *,
        endpoint: str = "",
        pause: float = 0,
    ) -> None:
        super().__init__(
            detail,
            endpoint=endpoint,
            retry_after=min(pause, LONGEST_WAIT),
        )
        self.pause = pause


class MalformedAnswer(ServiceError):
    code = "malformed_answer"


class SubjectMismatch(MalformedAnswer):
    code = "subject_mismatch"


class ServiceRefusal(ServiceError):
    """A well-formed error answer with the service's code (``service_code``) and HTTP status."""

    code = "service_refusal"

    def __init__(
        self,
        detail: str = "",
        *,
        service_code: str = "",
        status: int = 0,
        **more: Any,
    ) -> None:
        self.service_code = shaped_code(service_code)
        self.status = status
        if not detail:
            named = self.service_code or "no code"
            detail = f"refused with {named} (HTTP {status})"
        super().__init__(detail, **more)


class InvalidGrant(ServiceRefusal):
    code = "invalid_grant"


class AccessTokenRejected(ServiceRefusal):
    code = "access_token_rejected"


class InvalidConnectCode(ServiceRefusal):
    code = "invalid_connect_code"


class ClientRejected(ServiceRefusal):
    code = "client_rejected"


class EnvironmentMismatch(ServiceRefusal):
    code = "environment_mismatch"


class VerificationPolicyNotMet(ServiceRefusal):
    """The person lacks a required verification. ``kyc_url``: where they get it, if known."""

    kyc_url: str = ""
    code = "verification_policy_not_met"


# The grant, credentials and documents.


class ReauthorizationNeeded(IdentityError):
    code = "reauthorization_needed"


class SealedValueUnreadable(IdentityError):
    code = "sealed_value_unreadable"


class CredentialRejected(IdentityError):
    """A credential failed a check. ``reason`` says which, from a closed enum."""

    code = "credential_rejected"

    def __init__(self, reason: RejectionReason) -> None:
        super().__init__(reason)
        self.reason = reason


class DocumentUnreadable(IdentityError):
    code = "document_unreadable"


class DocumentsNotAllowed(IdentityError, PermissionDenied):
    code = "documents_not_allowed"


# Webhook deliveries, and the database.


class EventRefused(IdentityError):
    """A delivery that is not acknowledged. After a change of the settings the same may succeed."""

    code = "event_unreadable"


class UnexpectedError(IdentityError):
    """It stands for an error of the site's own code, which the log has under its ``reference``."""

    code = "unexpected_error"


class StorageUnavailable(IdentityError):
    """The database failed twice: it was away, or reported a deadlock. Try again later."""

    code = "storage_unavailable"
