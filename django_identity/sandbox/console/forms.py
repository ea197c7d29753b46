"""The forms of the console."""

import re
from dataclasses import asdict, fields
from enum import StrEnum
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_identity.sandbox.instruments import switches
from django_identity.sandbox.instruments.faults import FaultKind
from django_identity.sandbox.instruments.switches import Switches
from django_identity.sandbox.models import Client, User
from django_identity.sandbox.pages.wording import CLAIMS

_NAME = re.compile(r"`([^`]+)`")
MOST_CHARACTERS = 200_000
OFFERED = 50
ENDPOINTS = ("token", "profile", "kyc", "claims", "connect", "jwks", "authorize")
#: Kinds of faults that need no more to be said, with what the caller gets.
FAULTS = {
    FaultKind.STATUS: _("500 Internal Server Error"),
    FaultKind.RATE_LIMIT: _("429 with Retry-After"),
    FaultKind.MALFORMED: _("incomplete JSON"),
    FaultKind.DROP: _("no answer: the connection is closed"),
    FaultKind.DROP_MIDWAY: _("half an answer"),
}


def people() -> QuerySet[User]:
    """Return whom the console offers: the cast and those who were made last."""
    newest = User.objects.order_by("-is_cast", "-pk").values("pk")[:OFFERED]
    return User.objects.filter(pk__in=list(newest.values_list("pk", flat=True))).order_by(
        "-is_cast", "pk"
    )


class _PersonChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # none at run time
    """A person by name and address."""

    def label_from_instance(self, obj: User) -> str:
        return f"{obj.full_name} ({obj.email})"


class PersonForm(forms.Form):
    """To whom something happens, and to which claim."""

    person = _PersonChoice(label=_("Person"), queryset=User.objects.none(), empty_label=None)
    claim_type = forms.ChoiceField(label=_("Claim"), choices=list(CLAIMS.items()))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["person"].queryset = people()  # type: ignore[attr-defined]


class FaultForm(forms.Form):
    """Which call fails, and how."""

    endpoint = forms.ChoiceField(
        label=_("The next call of"), choices=[(each, each) for each in ENDPOINTS]
    )
    kind = forms.ChoiceField(label=_("gets"), choices=list(FAULTS.items()))


class PasteForm(forms.Form):
    """A credential from anywhere."""

    credential = forms.CharField(
        label=_("Credential"),
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"}),
    )


class PickForm(forms.Form):
    """Whose credential is issued, and for which application."""

    person = _PersonChoice(label=_("Person"), queryset=User.objects.none(), empty_label=None)
    client = forms.ModelChoiceField(
        label=_("Application"), queryset=Client.objects.order_by("pk"), empty_label=None
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["person"].queryset = people()  # type: ignore[attr-defined]


class SwitchesForm(forms.Form):
    """Every switch with its explanation."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = asdict(switches.current())
        for switch in fields(Switches):
            self.fields[switch.name] = _switch_field(
                switch.default, _explained(gettext(switch.metadata["help"]))
            )
            self.fields[switch.name].label = switch.name


def _explained(text: str) -> SafeString:
    """Return the explanation for a page: names between back quotes are code there."""
    return mark_safe(_NAME.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 -- escaped


def _switch_field(default: object, help_text: str) -> forms.Field:
    match default:
        case StrEnum():
            choices = [(str(each), str(each)) for each in type(default)]
            return forms.ChoiceField(choices=choices, help_text=help_text)
        case bool():
            return forms.BooleanField(required=False, help_text=help_text)
        case _:
            return forms.IntegerField(
                min_value=0, max_value=switches.HIGHEST_NUMBER, help_text=help_text
            )
