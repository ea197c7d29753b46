"""The forms of the person's own pages."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from django_identity.service.connect_code import LONGEST_PASTE


class ConnectForm(forms.Form):
    """One field that takes a code however it was pasted; ``lifecycle.connect`` finds it in there.

    A page never shows a bound one: nothing of a code may stay in it.
    """

    connect_code = forms.CharField(
        label=_("Your code"),
        max_length=LONGEST_PASTE,
        widget=forms.TextInput(
            attrs={
                "class": "identity-code",
                "autocomplete": "one-time-code",
                "autocapitalize": "characters",
                "autocorrect": "off",
                "spellcheck": "false",
                "enterkeyhint": "go",
                "placeholder": "CNX-XXXX-XXXX",
                "autofocus": True,
                "aria-describedby": "identity-connect-hint",
            }
        ),
    )

    @property
    def pasted(self) -> str:
        """What was handed in; nothing if it is empty, too long or no text."""
        return str(self.cleaned_data["connect_code"]) if self.is_valid() else ""
