"""The forms of the pages."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.models import User
from django_identity.sandbox.users.verification import AddressDocument, InvalidBvn, outcome_of


class SignInForm(forms.Form):
    """E-mail address and password."""

    email = forms.EmailField(
        label=_("E-mail address"),
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    user: User

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean(self) -> dict[str, Any]:
        """Refuse a wrong pair without saying which half is wrong."""
        values = self.cleaned_data
        if "email" in values and "password" in values:
            user = authenticate(
                self.request, username=values["email"].lower(), password=values["password"]
            )
            if not isinstance(user, User):
                raise forms.ValidationError(
                    _("That e-mail address and password do not match an account.")
                )
            self.user = user
        return values


class ConfirmPasswordForm(forms.Form):
    """The password of the person who is signed in, once more."""

    password = forms.CharField(
        label=_("Your password, once more"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        """Refuse any password but the person's own."""
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise forms.ValidationError(_("That is not your password."))
        return password


class AddressForm(forms.Form):
    """The kind of document that proves where a person lives."""

    document = forms.ChoiceField(
        label=_("Document"),
        choices=AddressDocument.choices,
        help_text=_("This sandbox takes your word for it: nothing is uploaded."),
    )


class BvnForm(forms.Form):
    """A bank verification number."""

    bvn = forms.CharField(
        label=_("Bank verification number (BVN)"),
        help_text=_("11 digits. This sandbox takes test numbers only."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )

    def clean_bvn(self) -> str:
        """Allow spaces between the digits."""
        bvn = "".join(self.cleaned_data["bvn"].split())
        try:
            outcome_of(bvn)
        except InvalidBvn as error:
            raise forms.ValidationError(_("A BVN has exactly 11 digits.")) from error
        return bvn
