"""The forms of the developer portal."""

import json
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.documents.keys import InvalidDocumentKey, public_key
from django_identity.sandbox.events.addresses import InvalidAddress, allowed_address
from django_identity.sandbox.server import callers

DEVELOPER_EMAIL = "developer@sandbox.example"
DEVELOPER_PASSWORD = "sandbox-developer"  # noqa: S105 -- documented, of a made-up account


class Proof(StrEnum):
    """The kind of password with which the developer signed in."""

    PASSWORD = "password"  # noqa: S105 -- a word, no secret
    TOKEN = "token"  # noqa: S105 -- a word, no secret


class DeveloperSignInForm(forms.Form):
    """E-mail address and password of the developer account.

    The fixed password works only on this machine. The token, which the sandbox prints at the start,
    works as the password everywhere.
    """

    email = forms.EmailField(
        label=_("E-mail address"),
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    proof: Proof

    def __init__(self, *args: Any, is_local: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_local = is_local

    def clean(self) -> dict[str, Any]:
        """Refuse a wrong pair, without telling which part is wrong."""
        values = self.cleaned_data
        email, password = values.get("email", "").lower(), values.get("password", "")
        if email and password:
            proof = self._proof_of(password)
            if proof is None or email != DEVELOPER_EMAIL:
                raise forms.ValidationError(
                    _("That e-mail address and password do not match a developer account.")
                )
            self.proof = proof
        return values

    def _proof_of(self, password: str) -> Proof | None:
        """Return the kind of ``password``, or None if it is wrong here."""
        if callers.is_token(password):
            return Proof.TOKEN
        is_fixed = constant_time_compare(password, DEVELOPER_PASSWORD)
        return Proof.PASSWORD if self._is_local and is_fixed else None


class RedirectUrisForm(forms.Form):
    """The redirect addresses, one for each line."""

    redirect_uris = forms.CharField(
        label=_("Redirect addresses"),
        help_text=_("One per line. They are compared as text, letter by letter."),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )

    def clean_redirect_uris(self) -> list[str]:
        """Accept absolute addresses without a fragment (RFC 6749, section 3.1.2)."""
        addresses: list[str] = self.cleaned_data["redirect_uris"].split()
        for address in addresses:
            if not _is_redirect_uri(address):
                raise forms.ValidationError(
                    _("%(address)s is not an absolute address without a fragment."),
                    params={"address": address},
                )
        return addresses


class NewApplicationForm(RedirectUrisForm):
    """The form for a new application."""

    name = forms.CharField(label=_("Name"), max_length=200, help_text=_("People see it."))
    field_order = ["name", "redirect_uris"]


class WebhookForm(forms.Form):
    """The webhook address; empty sends no events. Private addresses only from this machine."""

    url = forms.CharField(
        label=_("Webhook address"),
        required=False,
        max_length=2000,
        help_text=_("Events are posted here. Empty sends none."),
        widget=forms.URLInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, is_local: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_local = is_local

    def clean_url(self) -> str:
        """Accept http and https addresses."""
        url: str = self.cleaned_data["url"]
        try:
            return url and allowed_address(url, is_local=self._is_local)
        except InvalidAddress as error:
            raise forms.ValidationError(gettext(str(error))) from error


class TrustedTierForm(forms.Form):
    """The public key of a trusted application; empty ends the approval."""

    document_key = forms.CharField(
        label=_("Public key for documents"),
        required=False,
        max_length=5000,
        help_text=_("A JWK with kid and alg. Documents are encrypted to it. Empty: standard tier."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )

    def clean_document_key(self) -> dict[str, Any] | None:
        """Accept a public JWK, or nothing."""
        given: str = self.cleaned_data["document_key"]
        try:
            return public_key(json.loads(given)) if given else None
        except json.JSONDecodeError as error:
            raise forms.ValidationError(_("This is not JSON.")) from error
        except InvalidDocumentKey as error:
            raise forms.ValidationError(gettext(error.text), params=error.values) from error


def _is_redirect_uri(address: str) -> bool:
    """Return whether ``address`` is a valid redirect address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and "#" not in address
