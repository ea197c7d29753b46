"""Connect codes: making one after a look at what it shares, and the code itself."""

import math
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from django_identity.sandbox.connect import codes, redemption
from django_identity.sandbox.connect.codes import CodeState
from django_identity.sandbox.consents.scopes import Text, described
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import CONNECT_CODE_LIFETIME, ConnectCode
from django_identity.sandbox.pages.forms import ConfirmPasswordForm
from django_identity.sandbox.pages.navigation import signed_in_user
from django_identity.sandbox.pages.wording import refusal_reason
from django_identity.sandbox.users import verification
from django_identity.sandbox.users.cast import country_name

LIFETIME_SECONDS = int(CONNECT_CODE_LIFETIME.total_seconds())


@dataclass(frozen=True, slots=True)
class ShownCode:
    """A code as the pages show it."""

    code: ConnectCode
    state: CodeState
    seconds_left: int
    refusal: Text

    @property
    def masked(self) -> str:
        """The code with its middle hidden: enough to tell one from another."""
        return f"CNX-••••-{self.code.code[-4:]}"


@sensitive_post_parameters("password")
@login_required
@require_http_methods(["GET", "POST"])
def make_code(request: HttpRequest) -> HttpResponse:
    """Show what will be shared; make a code once the password is confirmed."""
    user = signed_in_user(request)
    form = ConfirmPasswordForm(user, request.POST or None)
    if form.is_valid():
        user.language = get_language()
        user.save(update_fields=["language"])
        return redirect("connect_code", number=codes.make(user).pk)
    context = {
        "form": form,
        "person": user,
        "country": country_name(user.country),
        "kyc": verification.kyc_status(user),
        "scopes": described(redemption.SCOPES),
    }
    return render(request, "sandbox/make_connect_code.html", context)


@login_required
@require_safe
def show_code(request: HttpRequest, number: int) -> HttpResponse:
    """Show a code of the person's own, and how long it is valid."""
    code = codes.find(signed_in_user(request), number)
    if code is None:
        raise Http404
    context = {"shown": shown(code), "lifetime": LIFETIME_SECONDS}
    return render(request, "sandbox/connect_code.html", context)


def shown(code: ConnectCode) -> ShownCode:
    """Return ``code`` with what the pages say about it."""
    left = (code.expires_at - clock.now()).total_seconds()
    return ShownCode(
        code=code,
        state=codes.state(code),
        seconds_left=max(0, math.ceil(left)),
        refusal=refusal_reason(code.refusal),
    )
