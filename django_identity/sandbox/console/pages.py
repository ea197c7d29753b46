"""The pages of the console, and what its buttons do: the same as the control API."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from django_identity.sandbox import (
    callers,
    claims,
    clock,
    consents,
    credentials,
    faults,
    keys,
    request_log,
)
from django_identity.sandbox import switches as all_switches
from django_identity.sandbox.console import activity
from django_identity.sandbox.console.remedies import REMEDIES
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.faults import Fault, FaultKind
from django_identity.sandbox.models import Delivery, User
from django_identity.sandbox.people import verification
from django_identity.sandbox.people.pages import next_address
from django_identity.sandbox.titles import CLAIM_TITLES

#: How far the clock may be ahead of real time.
DIFFERENCES = {-240: "4 minutes behind", 240: "4 minutes ahead", 0: "Real time"}
SPANS = {600: "10 minutes", 3600: "1 hour", 90_000: "25 hours", 2_678_400: "31 days"}
ENDPOINTS = ("token", "profile", "kyc", "claims", "connect", "jwks", "authorize")
#: Kinds of faults that need no more to be said.
FAULTS = ("status", "rate_limit", "malformed", "drop", "drop_midway")


class PersonForm(forms.Form):
    """To whom something happens: the cast first."""

    person = forms.ModelChoiceField(
        queryset=User.objects.order_by("-is_cast", "pk"),
        empty_label=None,
    )


class ClaimForm(PersonForm):
    """To whom something happens, and to which claim."""

    claim_type = forms.ChoiceField(label="Claim", choices=list(CLAIM_TITLES.items()))


class FaultForm(forms.Form):
    """Which call fails, and how."""

    endpoint = forms.ChoiceField(
        label="The next call of",
        choices=[(x, x) for x in ENDPOINTS],
    )
    kind = forms.ChoiceField(label="gets", choices=[(x, x) for x in FAULTS])


class ClockForm(forms.Form):
    """How far the clock is moved, or ahead of real time."""

    seconds = forms.IntegerField()


class PasteForm(forms.Form):
    """A credential from anywhere."""

    credential = forms.CharField(
        error_messages={
            "required": "There is none: this person has read no claims yet.",
        },
        widget=forms.Textarea(
            attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"},
        ),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def operator(request: HttpRequest) -> HttpResponse:
    """Ask whoever is not on this machine for the control token."""
    if callers.is_control_token(request.POST.get("token", "")):
        response = redirect(next_address(request) or "home")
        callers.remember(request, response)
        return response
    if request.method == "POST":
        messages.error(request, "That is not the control token.")
    return render(
        request,
        "sandbox/console/operator.html",
        {"next": next_address(request)},
    )


@require_safe
@callers.operators_only
def home(request: HttpRequest) -> HttpResponse:
    """Show what happened, and buttons for what a test would do."""
    context = {
        **_activity(request),
        "person_form": ClaimForm(),
        "fault_form": FaultForm(),
        "faults": faults.ordered(),
        "now": clock.now(),
        "offset": clock.offset(),
        "spans": SPANS,
        "differences": DIFFERENCES,
        "kid": keys.current().kid,
    }
    return render(request, "sandbox/console/home.html", context)


@require_safe
@callers.operators_only
def latest(request: HttpRequest) -> HttpResponse:
    """Return the list of what happened alone; the page asks for it every second."""
    return render(request, "sandbox/console/activity.html", _activity(request))


def _activity(request: HttpRequest) -> dict[str, object]:
    groups = activity.groups(
        with_good="quiet" not in request.GET,
        with_pages="pages" in request.GET,
        text=request.GET.get("text", ""),
    )
    return {"groups": groups}


@require_safe
@callers.operators_only
def one_request(request: HttpRequest, number: int) -> HttpResponse:
    """Show what came, what was answered, and what mends an error."""
    received = request_log.numbered(number)
    if received is None:
        raise Http404
    context = {
        "received": received,
        "remedy": REMEDIES.get(received.error.upper()),
        "came": _readable(received.form),
        "answered": _readable(received.answer),
    }
    return render(request, "sandbox/console/request.html", context)


def _readable(content: object) -> str:
    """Return ``content`` as JSON with line breaks."""
    return json.dumps(content, indent=2, ensure_ascii=False)


@require_http_methods(["GET", "HEAD", "POST"])
@callers.operators_only
def delivery(request: HttpRequest, delivery_id: int) -> HttpResponse:
    """Show one delivery with the request and each answer, and send it once more."""
    shown = get_object_or_404(Delivery.objects.select_related("client"), pk=delivery_id)
    if request.method == "POST":
        deliveries.send_again(shown)
        messages.success(request, "It is on its way. Reload to see what came back.")
        return redirect("console_delivery", delivery_id=delivery_id)
    context = {
        "delivery": shown,
        "readable": _readable(json.loads(shown.body)),
    }
    return render(request, "sandbox/console/delivery.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@callers.operators_only
def credential(request: HttpRequest) -> HttpResponse:
    """Take a credential apart that was pasted, or the last one of a person. It is not kept."""
    form = PasteForm(request.POST or None)
    of_person = PersonForm(request.POST)
    if of_person.is_valid():
        person = of_person.cleaned_data["person"]
        form = PasteForm({"credential": credentials.last.get(person.subject)})
    context: dict[str, object] = {"form": form}
    try:
        if form.is_valid():
            inspection = credentials.inspect(form.cleaned_data["credential"])
            context["inspection"] = inspection
            context["header"] = _readable(inspection.header)
            context["payload"] = _readable(inspection.payload)
    except Invalid:
        context["problem"] = (
            "This cannot be read as a credential. A credential looks like a.b.c~d~e~: "
            "a signed token, then each disclosure, with a ~ after each of them."
        )
    return render(request, "sandbox/console/credential.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@callers.operators_only
def switches(request: HttpRequest) -> HttpResponse:
    """Show every switch with its explanation; save them, or set all of them back."""
    current = asdict(all_switches.current())
    sent = request.POST
    if "reset" in sent:
        all_switches.reset()
        messages.success(request, "Every switch has its default again.")
    elif sent:
        chosen = {
            name: name in sent if isinstance(value, bool) else sent.get(name)
            for name, value in current.items()
        }
        try:
            all_switches.change(chosen)
            messages.success(request, "The switches are saved.")
        except Invalid as error:
            messages.error(request, f"{error} Nothing was changed.")
    if sent:
        return redirect("console_switches")
    shown = [
        (switch, switch.metadata["help"].split("`"), current[name])
        for name, switch in all_switches.ALL.items()
    ]
    return render(request, "sandbox/console/switches.html", {"switches": shown})


@require_POST
@callers.operators_only
def do(request: HttpRequest) -> HttpResponse:
    """Do what a button says, and go back to the console."""
    form_class, act, success = _ACTIONS.get(
        request.POST.get("do", ""),
        (forms.Form, None, ""),
    )
    form = form_class(request.POST)
    if act is None or not form.is_valid():
        messages.error(request, "There is no such person, thing or action.")
        return redirect("home")

    person = form.cleaned_data.get("person")
    try:
        act(*form.cleaned_data.values())
    except Invalid as error:
        messages.error(request, str(error))
    else:
        if person is not None:
            success = f"{person.full_name}: {success}"
        messages.success(request, success)
    deliveries.wake()
    return redirect("home")


def _revoke_claim(person: User, claim_type: str) -> None:
    if not claims.revoke(person, claim_type):
        raise Invalid("No such claim is active.")


def _revoke_consents(person: User) -> None:
    for consent in consents.granted(person):
        consents.revoke(person, consent.client.client_id)


def _fail(endpoint: str, kind: str) -> None:
    faults.order(Fault(kind=FaultKind(kind), endpoint=endpoint))


def _withdraw_key() -> None:
    keys.withdraw(keys.current().kid)


_verify = partial(verification.verify, bvn=verification.BVN_VERIFIED)
_reject = partial(verification.verify, bvn=verification.BVN_NAME_MISMATCH)


#: What a button is called -> what it needs, what it does, and what is said then.
_ACTIONS: dict[str, tuple[type[forms.Form], Callable[..., object], str]] = {
    "revoke_claim": (ClaimForm, _revoke_claim, "the claim is revoked."),
    "issue_claim": (ClaimForm, claims.issue, "the claim is issued."),
    "revoke_consents": (
        PersonForm,
        _revoke_consents,
        "every application has lost its access.",
    ),
    "verify": (PersonForm, _verify, "verified, with all claims."),
    "reject": (PersonForm, _reject, "rejected: the name does not match."),
    "invalidate": (
        PersonForm,
        verification.invalidate,
        "the verification is taken back.",
    ),
    "delete": (PersonForm, consents.request_deletion, "asked for deletion."),
    "fail": (FaultForm, _fail, "The next call fails."),
    "forget_faults": (forms.Form, faults.cancel, "No call fails any more."),
    "clock": (ClockForm, clock.advance, "The clock is set."),
    "differ": (ClockForm, clock.differ, "The clock is set."),
    "clear": (forms.Form, activity.clear, "What is over is forgotten."),
    "rotate_key": (
        forms.Form,
        keys.rotate,
        "A new key signs; the old one stays for 25 hours.",
    ),
    "withdraw_key": (
        forms.Form,
        _withdraw_key,
        "That key is withdrawn; a new one signs.",
    ),
}

urlpatterns = [
    path("", home, name="home"),
    path("console/operator", operator, name="operator"),
    path("console/activity", latest, name="console_activity"),
    path("console/requests/<int:number>", one_request, name="console_request"),
    path("console/deliveries/<int:delivery_id>", delivery, name="console_delivery"),
    path("console/credential", credential, name="console_credential"),
    path("console/switches", switches, name="console_switches"),
    path("console/do", do, name="console_do"),
]
