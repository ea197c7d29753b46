"""The table of errors: what pages, the API, the admin, the doctor, logs and docs say about a code.

A sentence may have the places ``service`` and ``site``. A person sees it on a page
(``web.flow.problem_page``; after a callback ``web.answers`` leads there) or in a problem
(``api.problems``), with the status of the row. Which failure ends a sign-in, and which leaves gates
closed: ``arriving.identification``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

Text = str | Promise


class Recovery(StrEnum):
    """What the person can do next."""

    RETRY = "retry"
    RESTART = "restart"
    SIGN_IN_TO_LINK = "sign_in_to_link"
    VERIFY = "verify"
    CONTACT = "contact"


@dataclass(frozen=True, slots=True)
class Row:
    """One code: status of the response, recovery, the person's sentence, the operator's hint.

    ``title``: of the page; by default a failed sign-in, or a refused code. ``button``: for what the
    person has to add at the service.
    """

    status: int
    recovery: Recovery
    sentence: Text
    hint: Text = ""
    title: Text = ""
    button: Text = ""


_RETRY = Recovery.RETRY
_RESTART = Recovery.RESTART
_CONTACT = Recovery.CONTACT
_SIGN_IN_TO_LINK = Recovery.SIGN_IN_TO_LINK
_NOT_IN = _("You were not signed in")
_SILENT = _("%(service)s is not answering")
_WRONG = _("Something went wrong. Please try again.")
_ENDED = _("Your permission has ended. Please sign in again.")
_UNUSABLE = _("%(service)s gave an answer that %(site)s cannot use.")
_UNREACHABLE = _("%(service)s cannot be reached at the moment.")
_SERVICE_REFUSED = _("%(service)s refused. Please start again.")
_REFUSED_US = _("The service refused the call. The person may have to consent again.")
_NO_USE = _("The service's answer lacks what this app needs. The log names the call.")
_CONSENT_AGAIN = _(
    "The grant is dead. The person has to consent again at their next visit.",
)


def _again(sentence: Text) -> Row:
    return Row(400, Recovery.RESTART, sentence)


def _refused(sentence: Text) -> Row:
    return Row(403, Recovery.CONTACT, sentence)


def _sign_in(sentence: Text, title: Text = _NOT_IN) -> Row:
    return Row(403, _SIGN_IN_TO_LINK, sentence, title=title)


def _verify(sentence: Text, button: Text) -> Row:
    title = _("One step is missing")
    return Row(403, Recovery.VERIFY, sentence, title=title, button=button)


def _bad_answer(sentence: Text, hint: Text = "") -> Row:
    """The service's answer is unusable. Another try may have a better one."""
    return Row(502, Recovery.RETRY, sentence, hint, _SILENT)


def _not_now(hint: Text, sentence: Text = _UNREACHABLE) -> Row:
    """The service is out of reach at the moment."""
    return Row(503, Recovery.RETRY, sentence, hint, _SILENT)


# fmt: off
ERRORS: Mapping[str, Row] = {
    "identity_error": Row(
        502, _RETRY, _WRONG,
        _("A call to the service failed without a code of its own. The log has the reference.")),
    "configuration": Row(
        500, _CONTACT, _("Sign-in is not set up correctly. Please tell the site's operators."),
        _("The site's settings for this application are wrong.")),
    "plain_http_refused": _refused(
        _("This page can only be opened over a secure connection (https).")),
    "storage_unavailable": Row(
        503, _RETRY, _("This site cannot store anything at the moment."),
        _("The database could not be reached, or refused. Nothing was stored.")),
    "unexpected_error": Row(
        500, _RETRY, _WRONG,
        _("Something failed that this app did not expect. The site's log has the kind of error.")),

    # The sign-in in the browser.
    "flow_error": _again(_WRONG),
    "callback_invalid": _again(_("This link is incomplete. Go back to %(site)s and start again.")),
    "request_unknown": _again(
        _("You started in another browser, or your cookies were cleared. Please start again.")),
    "request_expired": _again(_("This took too long. Please start again.")),
    "request_used": _again(_("This sign-in was already used once. Please start again.")),
    "form_expired": Row(
        403, _RESTART, _("Nothing was sent or changed. Start again."),
        title=_("This page was open too long")),
    "user_changed": _again(
        _("Another account is signed in here now, or none. Please start again.")),
    "session_ended": _again(_("Your session on this site has ended. Please sign in again.")),
    "session_needed": Row(
        403, _SIGN_IN_TO_LINK,
        _("This browser does not know you yet. Sign in to your account in it, then start again."),
        _("The call has a token and no session, and the service leads back to a page that knows "
          "sessions alone. Begin in a session, or set REDIRECT_URI to a page of the front end.")),
    "access_denied": Row(
        400, _RESTART, _("Nothing was changed. You can continue whenever you like."),
        _("The person shared nothing."), _("You did not share anything")),
    "authorization_refused": _again(_("%(service)s could not let you in. Please start again.")),

    # Linking.
    "linking_refused": _refused(_WRONG),
    "subject_taken": _refused(
        _("This identity is already connected to another account on this site.")),
    "user_holds_another": _refused(
        _("Your account is connected to another identity. Disconnect it first.")),
    "linked_by_code": _sign_in(
        _("A code connected this identity to an account here. It does not sign you in.")),
    "linked_before": Row(
        409, _RESTART,
        _("This identity was connected to this account before. Sign in with it.")),
    "link_not_allowed": _refused(_("Your account on this site may not be connected in this way.")),
    "sign_in_not_allowed": _sign_in(
        _("Your account on this site may not be signed in to in this way.")),
    "subject_changed": Row(
        403, _RESTART,
        _("You used a different account at %(service)s from the one connected here.")),
    "email_taken": _sign_in(
        _("An account with your e-mail address already exists here."),
        _("You have an account here")),
    "sign_up_refused": _refused(_("This site is not taking new accounts in this way.")),
    "user_fields_refused": _refused(
        _("This site cannot create an account from what %(service)s says.")),
    "connect_answer_refused": _refused(
        _("This site does not accept what %(service)s said about you.")),
    "user_inactive": _refused(_("Your account on this site is disabled.")),
    "approval_pending": Row(
        403, _CONTACT,
        _("The people who run %(site)s have to approve your account before you can use it."),
        title=_("Your account waits for approval")),
    "erasure_pending": Row(
        409, _RETRY, _("This account is being deleted. You can start again after that.")),
    "no_other_way_in": Row(409, _CONTACT, _("This identity is the only way in to your account.")),
    "consent_withdrawn": Row(
        403, _RESTART, _("Your consent was revoked while you were signing in."),
        title=_("Your consent was revoked")),

    # Connect codes.
    "connect_code_malformed": Row(400, _RETRY, _("Enter a code like CNX-XXXX-XXXX.")),
    "connect_code_in_use": Row(
        409, _RETRY, _("This code is being redeemed at this moment. Look at your account."),
        title=_("Your code is being checked")),
    "connect_code_used": Row(
        409, _RESTART, _("This code was handed in here before. A code works once.")),
    "too_many_tries": Row(
        429, _RETRY, _("Too many codes were entered in a short time."), title=_("Too many codes")),
    "connect_outcome_unknown": Row(
        502, _RESTART, _("%(service)s did not say whether it took your code."),
        _("The service did not say whether it took the code. The person makes a new one."),
        _SILENT),
    "invalid_connect_code": _again(
        _("This code is wrong, used or older than 10 minutes. Make a new one.")),
    "connect_code_required": Row(
        502, _CONTACT, _("%(service)s did not find the code in this site's request."),
        _("The service did not find the code in this site's request. Tell the service.")),
    "verification_policy_not_met": _verify(
        _("%(site)s needs a verification that you do not have yet. Add it at %(service)s."),
        _("Get verified")),
    "verification_policy_not_met.poa": _verify(
        _("%(site)s needs proof of address. Add it at %(service)s."), _("Add proof of address")),

    # Answers of the service.
    "service_error": _bad_answer(_UNUSABLE, _NO_USE),
    "malformed_answer": _bad_answer(_UNUSABLE, _NO_USE),
    "subject_mismatch": _bad_answer(
        _("%(service)s answered about somebody else."),
        _("The service answered about somebody else. Nothing was stored; tell the service.")),
    "subject_unknown": Row(
        502, _CONTACT, _("%(service)s did not say who you are."),
        _("The service did not say whom its answer is about. Nothing was stored; check SCOPES."),
        _SILENT),
    "service_unavailable": _not_now(
        _("The service could not be reached. It is tried again by itself.")),
    "service_timeout": _not_now(
        _("The service took longer than TIMEOUT. It is tried again by itself."),
        _("%(service)s took too long to answer.")),
    "unexpected_redirect": _not_now(
        _("The service pointed elsewhere, which this site never follows. Check BASE_URL.")),
    "keys_unavailable": _not_now(
        _("The service's keys could not be read, so nothing could be verified. "
          "It is tried again.")),
    "refresh_pending": _not_now(
        _("A refresh of the tokens is on its way. Try again in a minute.")),
    "rate_limited": _not_now(
        _("The service asked this site to slow down. It is tried again."),
        _("%(service)s is busy at the moment.")),
    "service_refusal": Row(502, _RESTART, _SERVICE_REFUSED, _REFUSED_US),
    "invalid_grant": Row(400, _RESTART, _SERVICE_REFUSED, _CONSENT_AGAIN),
    "access_token_rejected": Row(502, _RESTART, _SERVICE_REFUSED, _REFUSED_US),
    "environment_mismatch": Row(
        502, _CONTACT, _("You used a test account on a live site, or the reverse."),
        _("Test credentials met a live person, or the other way round. Check ENVIRONMENT.")),
    "client_rejected": Row(
        502, _CONTACT, _("%(service)s does not know this site's credentials."),
        _("The service does not take this site's own credentials. Check CLIENT_ID and "
          "CLIENT_SECRET.")),

    # Grants, credentials and documents.
    "reauthorization_needed": Row(502, _RESTART, _ENDED, _CONSENT_AGAIN),
    "sealed_value_unreadable": Row(
        403, _RESTART, _WRONG,
        _("No key of ENCRYPTION_KEYS opens what was stored. Put the former key back, behind the "
          "current one.")),
    "credential_rejected": Row(
        502, _CONTACT, _("%(service)s sent a proof that this site could not verify."),
        _("The credential failed a check, which the log names. API_ORIGIN must be the issuer, "
          "CLIENT_ID the audience, and the clocks right.")),
    "overtaken": Row(
        502, _RETRY, _WRONG, _("Something newer came first, so nothing of the answer was stored.")),
    "document_unreadable": Row(
        502, _CONTACT, _WRONG,
        _("The document could not be opened. Check DOCUMENT_KEYS.")),
    "documents_not_allowed": _refused(_("These documents are not shared with this site.")),

    # Deliveries of events.
    "signature_invalid": Row(401, _CONTACT, _("The signature does not fit the body.")),
    "event_unreadable": Row(400, _CONTACT, _("The body is not an event.")),
    "names_nobody": Row(
        422, _CONTACT, "The event does not say whom it is about.",
        "EVENT_SUBJECT_PATHS must have the member of the event that names its person."),
    "body_cut_off": Row(400, _CONTACT, "The body ended early."),
    "length_required": Row(411, _CONTACT, "The body has no length."),
    "body_too_large": Row(413, _CONTACT, "The body is larger than 256 KB."),
}
# fmt: on


def hint_of(code: str) -> str:
    """What an operator reads about ``code``."""
    row = ERRORS.get(code)
    if row is None:
        return code
    names = {"service": gettext("the service"), "site": gettext("this site")}
    return capfirst(str(row.hint or row.sentence) % names)
