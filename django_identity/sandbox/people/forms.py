"""The forms of the pages."""

from typing import Any

from django import forms


class _PasswordField(forms.CharField):
    """The present password, as it was typed."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})
        super().__init__(strip=False, widget=widget, **kwargs)


class PasswordForm(forms.Form):
    """The password of the person who is signed in, once more."""

    password = _PasswordField(label="Your password, once more")


class SignInForm(forms.Form):
    """E-mail address and password."""

    email = forms.EmailField(
        label="E-mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "username"}),
    )
    password = _PasswordField(label="Password")


class BvnForm(forms.Form):
    """A bank verification number. Whatever is no test number is not found, as at the service."""

    bvn = forms.CharField(
        label="Bank verification number (BVN)",
        required=False,
        help_text="One of the test numbers; any other is rejected.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )

    def clean_bvn(self) -> str:
        """Allow spaces between the digits."""
        return "".join(self.cleaned_data["bvn"].split())
