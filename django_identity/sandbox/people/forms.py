"""The forms of the pages."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.http import HttpRequest

from django_identity.sandbox import callers
from django_identity.sandbox.models import User
from django_identity.sandbox.people.accounts import PASSWORD


class _PasswordField(forms.CharField):
    """The present password, as it was typed."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})
        super().__init__(strip=False, widget=widget, **kwargs)


class SignInForm(forms.Form):
    """E-mail address and password. That of the cast, which all know, is for this machine alone."""

    email = forms.EmailField(
        label="E-mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "username"}),
    )
    password = _PasswordField(label="Password")
    user: User

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean(self) -> dict[str, Any]:
        """Refuse a wrong pair without saying which half is wrong."""
        values = self.cleaned_data
        if "email" in values and "password" in values:
            email = values["email"].lower()
            password = values["password"]
            user = authenticate(self.request, username=email, password=password)
            known_to_all = password == PASSWORD and not callers.is_operator(
                self.request
            )
            if not isinstance(user, User) or known_to_all:
                message = "That e-mail address and password do not match an account."
                raise forms.ValidationError(message)
            self.user = user
        return values


class ConfirmPasswordForm(forms.Form):
    """The password of the person who is signed in, once more."""

    password = _PasswordField(label="Your password, once more")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        if user.is_cast:
            self.fields[
                "password"
            ].help_text = f"The password of every test person is {PASSWORD}."

    def clean_password(self) -> str:
        """Refuse any password but the person's own."""
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise forms.ValidationError("That is not your password.")
        return password


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
