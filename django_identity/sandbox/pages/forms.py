"""The forms of the pages."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.models import CREDENTIAL_LIFETIME_SECONDS, Environment, KycStatus, User
from django_identity.sandbox.pages.wording import CLAIMS
from django_identity.sandbox.users.cast import COUNTRIES, PASSWORD, Member
from django_identity.sandbox.users.verification import AddressDocument, InvalidBvn, outcome_of


class SignInForm(forms.Form):
    """E-mail address and password."""

    email = forms.EmailField(
        label=_("E-mail address"), widget=forms.EmailInput(attrs={"autocomplete": "username"})
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


class NewPersonForm(forms.Form):
    """A test person, made as a developer wants one."""

    first_name = forms.CharField(label=_("First name"), max_length=100)
    last_name = forms.CharField(label=_("Last name"), max_length=100)
    country = forms.ChoiceField(label=_("Country"), choices=list(COUNTRIES.items()))
    age = forms.IntegerField(label=_("Age"), min_value=0, max_value=120, initial=30)
    kyc_status = forms.ChoiceField(
        label=_("Verification"),
        initial=KycStatus.VERIFIED,
        choices=[
            (KycStatus.VERIFIED, _("Verified: level_2")),
            (KycStatus.UNVERIFIED, _("Not verified yet: level_1")),
            (KycStatus.REJECTED, _("Rejected: level_1")),
        ],
    )
    claims = forms.MultipleChoiceField(
        label=_("Claims"),
        required=False,
        initial=list(CLAIMS),
        choices=list(CLAIMS.items()),
        widget=forms.CheckboxSelectMultiple(),
        help_text=_("Only a verified person has claims, and only somebody who is 18 that of age."),
    )
    proof_of_address = forms.BooleanField(label=_("Proof of address"), required=False, initial=True)
    credential_seconds = forms.IntegerField(
        label=_("Seconds that a credential is valid"),
        min_value=1,
        max_value=CREDENTIAL_LIFETIME_SECONDS,
        initial=CREDENTIAL_LIFETIME_SECONDS,
    )
    environment = forms.ChoiceField(
        label=_("Environment"),
        initial=Environment.TEST,
        choices=[(Environment.TEST, _("Test")), (Environment.LIVE, _("Live"))],
    )

    def member(self) -> Member:
        """Return what the form describes."""
        values = self.cleaned_data
        return Member(
            first_name=values["first_name"],
            last_name=values["last_name"],
            country=values["country"],
            age=values["age"],
            kyc_status=KycStatus(values["kyc_status"]),
            proof_of_address=values["proof_of_address"],
            credential_seconds=values["credential_seconds"],
            without=frozenset(CLAIMS) - frozenset(values["claims"]),
            environment=Environment(values["environment"]),
        )


class ConfirmPasswordForm(forms.Form):
    """The password of the person who is signed in, once more."""

    password = forms.CharField(
        label=_("Your password, once more"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        if user.is_cast:
            told = _("The password of every test person is %(password)s.")
            self.fields["password"].help_text = told % {"password": PASSWORD}

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
