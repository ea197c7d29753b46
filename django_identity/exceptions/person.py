"""What goes astray with a person: their way through the browser, and who they may become here."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.root import IdentityError, Recovery, Stage


class FlowError(IdentityError):
    code = "flow_error"
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
