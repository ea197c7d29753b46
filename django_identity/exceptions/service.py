"""What the service says no to, and what it says badly."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.root import IdentityError, Recovery, Stage, shaped_code


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
