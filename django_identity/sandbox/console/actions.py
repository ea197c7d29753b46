"""What the buttons of the console do: the same as the control API, and back to the console."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from django_identity.sandbox.claims import claims
from django_identity.sandbox.consents import consents
from django_identity.sandbox.console.forms import FaultForm, PersonForm, SwitchesForm
from django_identity.sandbox.developer.session import console_required
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.instruments import clock, faults, switches
from django_identity.sandbox.instruments.faults import Fault, FaultKind
from django_identity.sandbox.keys import key_set
from django_identity.sandbox.models import User
from django_identity.sandbox.pages.wording import claim_title
from django_identity.sandbox.users import deletion, verification


@console_required
@require_POST
def to_person(request: HttpRequest) -> HttpResponse:
    """Let something happen to a person."""
    form = PersonForm(request.POST)
    act = _TO_PERSON.get(request.POST.get("do", ""))
    if act is None or not form.is_valid():
        messages.error(request, _("That person or that action does not exist."))
    else:
        person: User = form.cleaned_data["person"]
        words = act(person, form.cleaned_data["claim_type"])
        messages.success(request, f"{person.full_name}: {words}")
    return redirect("home")


@console_required
@require_POST
def keys(request: HttpRequest) -> HttpResponse:
    """Rotate the signing key, or withdraw it."""
    if "withdraw" in request.POST:
        key_set.withdraw(key_set.current().kid)
        messages.success(request, _("The signing key is withdrawn; a new one signs."))
    else:
        key_set.rotate()
        messages.success(request, _("A new key signs; the old one stays published for 25 hours."))
    return redirect("home")


@console_required
@require_POST
def move_clock(request: HttpRequest) -> HttpResponse:
    """Move the clock forward, or back to real time."""
    seconds = request.POST.get("seconds", "")
    if seconds.isascii() and seconds.isdecimal() and len(seconds) < 9:
        clock.advance(int(seconds))
        messages.success(request, _("The clock is moved."))
    else:
        clock.reset()
        messages.success(request, _("The clock shows real time."))
    deliveries.wake()
    return redirect("home")


@console_required
@require_POST
def fail_next(request: HttpRequest) -> HttpResponse:
    """Order a fault for the next call of an endpoint, or forget those that were ordered."""
    form = FaultForm(request.POST)
    if "forget" in request.POST:
        faults.cancel()
        messages.success(request, _("No call fails any more."))
    elif form.is_valid():
        kind, endpoint = FaultKind(form.cleaned_data["kind"]), form.cleaned_data["endpoint"]
        faults.order(Fault(kind=kind, endpoint=endpoint))
        messages.success(request, _("The next call of %(name)s fails.") % {"name": endpoint})
    else:
        messages.error(request, _("That endpoint or that failure does not exist."))
    return redirect("home")


@console_required
@require_POST
def change_switches(request: HttpRequest) -> HttpResponse:
    """Save every switch, or set all of them back."""
    form = SwitchesForm(request.POST)
    if "reset" in request.POST:
        switches.reset()
        messages.success(request, _("Every switch has its default again."))
    elif form.is_valid():
        switches.change(form.cleaned_data)
        messages.success(request, _("The switches are saved."))
    else:
        messages.error(request, _("One of the values is not possible; nothing was changed."))
    deliveries.wake()
    return redirect("console_switches")


def _revoke_claim(person: User, claim_type: str) -> str:
    revoked = claims.revoke(person, claim_type)
    title = {"claim": claim_title(claim_type)}
    words = _("the claim “%(claim)s” is revoked.") if revoked else _("no such claim is active.")
    return words % title


def _issue_claim(person: User, claim_type: str) -> str:
    try:
        claims.issue(person, claim_type)
    except claims.NotProven:
        return _("the verification does not prove that claim.")
    return _("the claim “%(claim)s” is issued.") % {"claim": claim_title(claim_type)}


def _revoke_consents(person: User, _claim_type: str) -> str:
    for consent in consents.granted(person):
        consents.revoke(person, consent.client.client_id)
    return _("every application has lost its access.")


def _verify(person: User, _claim_type: str) -> str:
    verification.verify(person, verification.BVN_VERIFIED)
    return _("verified, with all claims.")


def _reject(person: User, _claim_type: str) -> str:
    verification.verify(person, verification.BVN_NAME_MISMATCH)
    return _("rejected: the name does not match.")


def _invalidate(person: User, _claim_type: str) -> str:
    verification.invalidate(person)
    return _("the verification is taken back.")


def _delete(person: User, _claim_type: str) -> str:
    first = deletion.request(person)
    return _("asked for deletion.") if first else _("had asked for deletion before.")


_TO_PERSON: dict[str, Callable[[User, str], str]] = {
    "revoke_claim": _revoke_claim,
    "issue_claim": _issue_claim,
    "revoke_consents": _revoke_consents,
    "verify": _verify,
    "reject": _reject,
    "invalidate": _invalidate,
    "delete": _delete,
}
