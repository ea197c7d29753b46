"""The form for a Connect code."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from django_identity.exceptions import IdentityError
from django_identity.service.connect_code import LONGEST_PASTE


class ConnectForm(forms.Form):
    """One field for pasted text; ``lifecycle.arrival`` finds the code in the text.

    Pages only show the unbound form, so that no page contains a code.
    """

    connect_code = forms.CharField(
        label=_("Your code"),
        max_length=LONGEST_PASTE,
        widget=forms.TextInput(
            attrs={
                "class": "identity-code",
                "autocomplete": "off",
                "dir": "ltr",
                "autocapitalize": "characters",
                "autocorrect": "off",
                "spellcheck": "false",
                "enterkeyhint": "go",
                "placeholder": "CNX-XXXX-XXXX",
                "aria-describedby": "identity-connect-hint",
            }
        ),
    )

    @classmethod
    def after(cls, error: IdentityError | None, *, typed: str = "") -> ConnectForm:
        """The form to show, with ``typed`` in it. After an error the field points to it."""
        form = cls(initial={"connect_code": typed})
        if error is not None:
            form.fields["connect_code"].widget.attrs |= {
                "aria-invalid": "true",
                "aria-describedby": "identity-connect-hint identity-connect-error",
            }
        return form

    @property
    def pasted(self) -> str:
        """The pasted text, or an empty text if the field is invalid."""
        return str(self.cleaned_data["connect_code"]) if self.is_valid() else ""
