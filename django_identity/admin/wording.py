"""Texts for operators: names of codes, times and reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.lifecycle.erasure import AccountFate, Preview
from django_identity.lifecycle.operators import Kind
from django_identity.lifecycle.standing import Reason
from django_identity.models import Environment, ErasureReceipt, LinkedIdentity, WebhookEvent
from django_identity.service.moments import has_no_end
from django_identity.texts import labels
from django_identity.texts.labels import in_words, is_level

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser
    from django.utils.functional import _StrPromise

    Words = str | _StrPromise
else:
    Words = object

SHOWN_OF_SUBJECT = 8
# The user names of accounts that the package makes.
GENERATED = re.compile(r"identity-[0-9a-f]{32}")

OPEN_TO_LEVEL: Words = _("The service said so itself, over an authenticated channel.")
OPEN_TO_VALUE: Words = _("Open only to gates that ask for exactly this value.")
OPEN_TO_CLAIM: Words = _("Proven by a credential that this site verified.")

GATE_REASONS: Mapping[Reason, Words] = {
    Reason.NOT_LINKED: _("No identity is linked to the account."),
    Reason.NOT_SET_UP: _("This application is no longer in the site's settings."),
    Reason.OTHER_ENVIRONMENT: _(
        "The application is in the other environment now: test and live are never mixed."
    ),
    Reason.CONSENT_REVOKED: _(
        "The consent is revoked. The person has to sign in and consent again."
    ),
    Reason.ENDED_BY_SITE: _("An operator ended the connection. The person can connect again."),
    Reason.PERMISSION_ENDED: _("The grant is dead. The person has to consent again."),
    Reason.PERMISSION_ENDS: _("The grant ends soon."),
    Reason.CONNECT_ONLY: _(
        "A Connect code alone verified this person, and a code brings no proofs. The person has to "
        "sign in with identity."
    ),
    Reason.NOT_HELD: _(
        "The service gave this site no such claim. The person may not have verified it, or the "
        "application does not ask for it."
    ),
    Reason.REVOKED: _("The claim is revoked. The person has to verify it again."),
    Reason.NEVER_PROVEN: _("The service lists the claim, but no verified credential proves it."),
    Reason.RUN_OUT: _("The proof ran out and was not replaced."),
    Reason.OTHER_VALUE: _("Proven, but its value is not true."),
    Reason.KYC_UNKNOWN: _("The service has told this site no KYC status."),
    Reason.NOT_VERIFIED: _("The KYC status is not “verified”."),
    Reason.LOWER_LEVEL: _("The KYC level is lower."),
}

NAMES: Mapping[str, Words] = {
    "kyc_verified": _("Identity verified"),
    "age_over_18": _("18 or older"),
    "country_resident": _("Country of residence"),
    "unique_human": _("One person, one account"),
    "level_1": _("KYC level 1 or higher"),
    "level_2": _("KYC level 2 or higher"),
    "profile:read": _("Name, e-mail address, country and photo"),
    "profile:basic": _("Name, e-mail address and country"),
    "kyc:read": _("Whether and how well the person is verified"),
    "kyc:status": _("Whether and how well the person is verified"),
    "claims:read": _("Signed proofs, such as being 18 or older"),
    "documents:metadata": _("Which documents are verified, without their content"),
    "documents:read": _("The content of identity documents, encrypted for this site"),
}

HAPPENINGS: Mapping[Kind, Words] = {
    Kind.LINKED: _("Linked"),
    Kind.SIGNED_IN: _("Signed in"),
    Kind.RENEWED: _("Consented again"),
    Kind.SIGN_IN_FAILED: _("Sign-in failed"),
    Kind.REFETCHED: _("Credential issued (the latest)"),
    Kind.CODE_REDEEMED: _("Connect code redeemed (the latest)"),
    Kind.CONSENT_GRANTED: _("Consent granted"),
    Kind.CONSENT_REVOKED: _("Consent revoked"),
    Kind.EVENT: _("Event"),
}

FATES: Mapping[AccountFate, Words] = {
    AccountFate.KEPT: _("The account stays."),
    AccountFate.EMPTIED: _("The account is emptied and disabled."),
    AccountFate.DELETED: _("The account is deleted."),
}

ERRORS: Mapping[str, Words] = {
    "service_unavailable": _("The service could not be reached. It is tried again by itself."),
    "service_timeout": _("The service did not answer in time. It is tried again."),
    "keys_unavailable": _(
        "The service's keys could not be read, so nothing could be verified. It is tried again."
    ),
    "rate_limited": _("The service asked this site to slow down. It is tried again."),
    "malformed_answer": _("The service's answer could not be read."),
    "answer_too_large": _("The service's answer was larger than this site takes."),
    "unexpected_redirect": _(
        "The service pointed elsewhere, which this site never follows. Check BASE_URL."
    ),
    "subject_mismatch": _(
        "The service answered about somebody else. Nothing was stored; tell the service."
    ),
    "subject_unknown": _(
        "The service did not say whom its answer is about. Nothing was stored; check SCOPES."
    ),
    "service_error": _("The service gave an answer that this site cannot use."),
    "service_refusal": _("The service refused the call."),
    "client_rejected": _(
        "The service does not take this site's own credentials. Check CLIENT_ID and CLIENT_SECRET."
    ),
    "unexpected_error": _(
        "Something failed that this app did not expect. The site's log has the kind of error."
    ),
    "invalid_grant": _("The grant is dead. The person has to consent again at their next visit."),
    "access_token_rejected": _(
        "The service did not take the access token. The person may have to consent again."
    ),
    "access_forbidden": _(
        "The service does not let this site read that any more. The person has to consent again."
    ),
    "environment_mismatch": _(
        "Test credentials met a live person, or the other way round. Check ENVIRONMENT."
    ),
    "credential_rejected": _(
        "The credential failed a check, so it was not believed. Check the credential to see which."
    ),
    "sealed_value_unreadable": _(
        "No key of ENCRYPTION_KEYS opens what was stored. The person has to consent again."
    ),
    "no_credential": _("There is no credential: none came, or it went with the consent."),
    "reauthorization_needed": _(
        "The grant is dead or gone. The person has to consent again at their next visit."
    ),
    "refresh_pending": _("A refresh of the tokens is on its way. Try again in a minute."),
    "service_away": _("The last calls to the service failed, so none is made for a while."),
    "budget_spent": _("The calls allowed for now (RATE_LIMIT) are spent."),
    "overtaken": _("Something newer came first, so nothing of the answer was stored."),
    "nothing to fetch": _("There is no consent to read claims."),
    "configuration": _("The site's settings for this application are wrong."),
}


def person_name(user: AbstractBaseUser, *, may_see: bool) -> str:
    """The person's user name.

    A generated user name is replaced by the e-mail address. Without ``may_see`` (the permission to
    see users) no e-mail address is shown.
    """
    name, email = user.get_username(), email_of(user)
    if GENERATED.fullmatch(name) and may_see and email:
        return email
    is_shown = not GENERATED.fullmatch(name) and (may_see or "@" not in name)
    return name if is_shown else gettext("user #%(number)s") % {"number": user.pk}


def email_of(user: AbstractBaseUser) -> str:
    return str(getattr(user, user.get_email_field_name(), "") or "")


def name_of(code: str) -> Words:
    """The name of a claim, a level or a scope for operators."""
    if code not in NAMES and is_level(code):
        return level_name(code)
    return NAMES.get(code, code)


def level_name(level: str) -> str:
    """The level that a person has: “level 2”, without the “or higher” of a gate."""
    return gettext("level %(number)s") % {"number": labels.level_name(level)} if level else ""


def status_name(status: str) -> str:
    """The name of the KYC status. An unknown status is shown as the service sent it."""
    return str(in_words(status))


def error_in_words(code: str) -> Words:
    """The meaning of a stored error. ``code`` may have a detail after a colon."""
    known = ERRORS.get(code.partition(":")[0].strip())
    return known or gettext("An error of the kind “%(code)s”.") % {"code": code}


def handler_trouble(event: WebhookEvent) -> str:
    """The state of an event with a failed handler, or an empty text."""
    if not event.error:
        return ""
    if event.next_attempt_at is not None:
        return gettext("A handler of the site failed, and is tried again by itself:")
    return gettext(
        "A handler of the site failed, and is not tried again. Replay it once it is mended:"
    )


def freshness(valid_until: datetime | None) -> str:
    """When a credential expires or expired: “in 5 hours”, “ran out 2 hours ago”."""
    if valid_until is None:
        return gettext("none")
    if valid_until > timezone.now():
        return gettext("in %(span)s") % {"span": timeuntil(valid_until, depth=1)}
    return gettext("ran out %(span)s ago") % {"span": timesince(valid_until, depth=1)}


def spelt(moment: datetime | None) -> str:
    """Date and time in the operator's format and time zone."""
    if moment is None:
        return ""
    if has_no_end(moment):
        return gettext("no end")
    return str(formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT"))


def due(moment: datetime | None) -> str:
    """When a re-fetch is due: “now”, “in 5 hours”."""
    if moment is None:
        return gettext("never")
    if moment <= timezone.now():
        return gettext("now")
    return gettext("in %(span)s") % {"span": timeuntil(moment, depth=1)}


def losses(preview: Preview) -> list[str]:
    """What an erasure deletes: "4 claims", "3 events", "The account is deleted."."""
    claims, events, starts = (
        preview.counts[table] for table in ("storedclaim", "webhookevent", "authorizationrequest")
    )
    return [
        ngettext("%(count)d claim", "%(count)d claims", claims) % {"count": claims},
        ngettext("%(count)d event", "%(count)d events", events) % {"count": events},
        ngettext("%(count)d sign-in", "%(count)d sign-ins", starts) % {"count": starts},
        *ended_sessions(preview.sessions),
        str(FATES[preview.account]),
    ]


def ended_sessions(count: int | None) -> list[str]:
    """How many sessions end, if that is known."""
    if count is None:
        return []
    return [ngettext("%(count)d session", "%(count)d sessions", count) % {"count": count}]


def short_subject(subject: str) -> SafeString:
    """The beginning of a subject, with the full subject as a tooltip."""
    if len(subject) <= SHOWN_OF_SUBJECT + 1:
        return format_html('<bdi class="identity-subject">{}</bdi>', subject)
    return format_html(
        '<bdi class="identity-subject" title="{}">{}…</bdi>', subject, subject[:SHOWN_OF_SUBJECT]
    )


def badge_of(row: LinkedIdentity | ErasureReceipt | WebhookEvent) -> SafeString | str:
    """A badge that marks test data. Events do not store an environment: test ones are marked."""
    if not isinstance(row, WebhookEvent):
        return environment_badge(row.environment)
    alias = row.application
    if alias not in conf.aliases() or conf.application(alias).environment == Environment.LIVE:
        return ""
    return environment_badge(Environment.TEST)


def environment_badge(environment: str) -> SafeString:
    if environment == Environment.LIVE:
        return format_html('<span class="identity-badge">{}</span>', _("live"))
    return format_html('<span class="identity-badge identity-badge-test">{}</span>', _("TEST DATA"))
