"""What goes astray with a Connect code: before it is sent, at the service, and with its answer."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.person import FlowError, LinkingRefused
from django_identity.exceptions.root import Recovery, Stage
from django_identity.exceptions.service import ServiceError, ServiceRefusal


class ConnectCodeMalformed(FlowError):
    """What was handed in holds no code, or more than one. Nothing was sent."""

    code = "connect_code_malformed"
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("That is not a code. A code looks like CNX-XXXX-XXXX; paste it once.")


class ConnectSignInNeeded(FlowError):
    """Nobody is signed in, and the policy takes no codes from strangers. Nothing was sent."""

    code = "connect_sign_in_needed"
    stage = Stage.CONNECT
    recovery = Recovery.SIGN_IN_TO_LINK
    public_message = _("Sign in first: a code verifies the account that you are signed in to.")


class ConnectCodeInUse(FlowError):
    code = "connect_code_in_use"
    stage = Stage.CONNECT
    recovery = Recovery.RETRY
    public_message = _("This code is being redeemed at this moment. Look at your account.")


class ConnectCodeUsed(FlowError):
    code = "connect_code_used"
    stage = Stage.CONNECT
    public_message = _("This code was handed in here before. A code works once.")


class TooManyTries(FlowError):
    """``retry_after``: seconds until the next code is taken. Nothing was sent."""

    code = "too_many_tries"
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
    recovery = Recovery.RESTART
    public_message = _("The identity service did not say whether it took your code.")


class InvalidConnectCode(ServiceRefusal):
    code = "invalid_connect_code"
    public_message = _("The identity service does not know this code, or it was used or ran out.")


class ConnectCodeRequired(ServiceRefusal):
    """The service took the request for one of the retired form."""

    code = "connect_code_required"
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
