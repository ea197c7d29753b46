"""The pages of the console: what happens, a credential, the switches."""

from collections.abc import Iterator

from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from django_identity.sandbox.claims import claims, credentials
from django_identity.sandbox.console import activity, inspection
from django_identity.sandbox.console.activity import Place
from django_identity.sandbox.console.forms import (
    FaultForm,
    PasteForm,
    PersonForm,
    PickForm,
    SwitchesForm,
)
from django_identity.sandbox.developer.session import console_required
from django_identity.sandbox.instruments import clock, faults
from django_identity.sandbox.keys import key_set
from django_identity.sandbox.server import callers, http_server

SPANS = {600: _("10 minutes"), 3600: _("1 hour"), 90_000: _("25 hours"), 2_678_400: _("31 days")}
_LOOKS_EVERY_SECONDS = 0.25
_SIGN_OF_LIFE_EVERY_LOOKS = 20


@console_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what happened, and buttons for what a test would do."""
    entries, place = activity.after(Place(), is_local=callers.is_local(request))
    context = {
        "entries": entries[::-1],
        "place": place,
        "person_form": PersonForm(),
        "fault_form": FaultForm(),
        "faults": faults.ordered(),
        "now": clock.now(),
        "offset": clock.offset(),
        "spans": SPANS.items(),
        "kid": key_set.current().kid,
    }
    return render(request, "sandbox/console/home.html", context)


@console_required
@require_safe
def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Send what happens from now on, as server-sent events of one line of HTML each."""
    read = request.headers.get("Last-Event-ID") or request.GET.get("from", "")
    lines = _lines(Place.read(read), is_local=callers.is_local(request))
    return StreamingHttpResponse(lines, content_type="text/event-stream")


@console_required
@require_http_methods(["GET", "POST"])
def credential(request: HttpRequest) -> HttpResponse:
    """Take a credential apart that was pasted, or one that is issued for it."""
    is_picked = "person" in request.POST
    paste = PasteForm(request.POST if request.POST and not is_picked else None)
    pick = PickForm(request.POST if is_picked else None)
    text = ""
    if pick.is_valid():
        person, client = pick.cleaned_data["person"], pick.cleaned_data["client"]
        text = credentials.issue(person, claims.active(person), audience=client.client_id)
        paste = PasteForm(initial={"credential": text})
    elif paste.is_valid():
        text = paste.cleaned_data["credential"]
    context = {"paste": paste, "pick": pick, **_inspected(text)}
    return render(request, "sandbox/console/credential.html", context)


@console_required
@require_safe
def switches(request: HttpRequest) -> HttpResponse:
    """Show every switch with its explanation."""
    return render(request, "sandbox/console/switches.html", {"form": SwitchesForm()})


def _inspected(text: str) -> dict[str, object]:
    """Return what the page says about the credential ``text``."""
    if not text:
        return {}
    try:
        return {"inspection": inspection.inspect(text)}
    except inspection.NotACredential as error:
        return {"problem": str(error)}


def _lines(place: Place, *, is_local: bool) -> Iterator[str]:
    """Yield server-sent events until the sandbox stops or the page is closed."""
    looks = 0
    try:
        yield "retry: 1000\n\n"
        while not http_server.ending.wait(_LOOKS_EVERY_SECONDS):
            entries, place = activity.after(place, is_local=is_local)
            for entry in entries:
                line = render_to_string("sandbox/console/entry.html", {"entry": entry})
                yield f"id: {place}\ndata: {' '.join(line.split())}\n\n"
            looks += 1
            if not entries and looks % _SIGN_OF_LIFE_EVERY_LOOKS == 0:
                yield ":\n\n"
    finally:
        connection.close()
