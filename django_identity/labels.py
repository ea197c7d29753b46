"""Translated names of codes, columns and tables, for people."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

WORDS: Mapping[str, str | Promise] = {
    "profile:read": _("Your name, e-mail address, country and photo"),
    "kyc:read": _("Whether and how well your identity has been verified"),
    "claims:read": _("Signed proofs about you, such as being 18 or older"),
    "documents:metadata": _("Which documents you have verified, without their content"),
    "documents:read": _("The content of your identity documents, encrypted for this site"),
    "profile:basic": _("Your name, e-mail address and country"),
    "kyc:status": _("Whether and how well your identity has been verified"),
    "kyc_verified": _("your identity has been verified"),
    "age_over_18": _("you are 18 or older"),
    "country_resident": _("your country of residence"),
    "unique_human": _("you are one person with one account"),
    "level_1": _("verification at level 1"),
    "level_2": _("verification at level 2"),
    "verified": _("verified"),
    "rejected": _("rejected"),
    "completed": _("completed"),
    "kyc.verified": _("you were verified"),
    "kyc.rejected": _("your verification was rejected"),
    "consent.granted": _("you gave your consent"),
    "consent.revoked": _("you took back your consent"),
    "claim.issued": _("a claim was issued"),
    "claim.revoked": _("a claim was revoked"),
    "data.deletion_requested": _("you asked to be erased"),
}


# Column -> its name on the person's own pages.
LABELS: Mapping[str, str | Promise] = {
    "access_expires_at": _("Access ends"),
    "application": _("Application"),
    "claim_type": _("Claim"),
    "connect_issued_at": _("Shared by code on"),
    "connect_person": _("Owner of the code"),
    "connect_request_id": _("Connect request"),
    "consent": _("Consent"),
    "consent_changed_at": _("Consent since"),
    "created_at": _("Since"),
    "credential_expires_at": _("Credential valid until"),
    "credential_issued_at": _("Credential issued"),
    "environment": _("Environment"),
    "event_type": _("Event"),
    "expires_at": _("Claim ends"),
    "issued_at": _("Issued"),
    "kyc_level": _("Level of verification"),
    "kyc_provider": _("Verified by"),
    "kyc_status": _("Verification"),
    "kyc_verified_at": _("Verified on"),
    "kyc_checked_at": _("Last confirmed by the identity service"),
    "linked_via": _("Linked by"),
    "account_made": _("Your account was made for it"),
    "needs_reauthorization": _("Needs you to renew"),
    "next": _("Page you wanted"),
    "occurred_at": _("Happened"),
    "outcome": _("Outcome"),
    "payload": _("What it said"),
    "proof_hash": _("Proof hash"),
    "provider": _("Proven by"),
    "purpose": _("Purpose"),
    "received_at": _("Arrived"),
    "refresh_expires_at": _("Renewal ends"),
    "revoked": _("Revoked"),
    "scopes": _("What it lets this site read"),
    "subject": _("Your subject at the identity service"),
    "updated_at": _("Last changed"),
    "valid_until": _("Proven until"),
    "value": _("Value"),
}

# Table -> its name on the person's own pages, and why the site stores its records.
KINDS: Mapping[str, tuple[str | Promise, str | Promise]] = {
    "linkedidentity": (
        _("Linked identity"),
        _("That you and the person at the identity service are the same."),
    ),
    "storedclaim": (
        _("Claims"),
        _("What the identity service says about you, and how far it is proven."),
    ),
    "tokengrant": (
        _("Grant"),
        _("What lets this site ask the identity service about you. Its tokens are kept sealed."),
    ),
    "webhookevent": (
        _("Events"),
        _("What the identity service told this site about you, and when."),
    ),
    "authorizationrequest": (
        _("Sign-ins"),
        _("Each time you went to the identity service from here."),
    ),
    "connectredemption": (
        _("Connect codes"),
        _("Each code that you handed in here, without the code itself."),
    ),
    # Only counted by an erasure, and not shown to the person.
    "session": (_("Sessions"), ""),
    "user": (_("Account"), ""),
}


def in_words(code: str) -> str | Promise:
    """The name of ``code`` in the person's language, or ``code`` itself if it has no name.

    ``"country_resident=NG"`` is a claim with its value.
    """
    claim_type, asks_value, value = code.partition("=")
    words = WORDS.get(claim_type, claim_type)
    return format_lazy("{}: {}", words, value) if asks_value else words


def label_of(field: str) -> str | Promise:
    """The name of the column ``field`` on the person's own pages."""
    return LABELS.get(field, field)


def kind_of(table: str) -> tuple[str | Promise, str | Promise]:
    """The name of ``table``, and why the site stores its records."""
    return KINDS.get(table, (table, ""))
