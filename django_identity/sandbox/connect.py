"""Connect (spec: Connect code, redemption result, states, POST /connect/request) and its pages."""

import hashlib
import hmac
import json
import math
import re
import secrets
import string
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from django_identity.sandbox import (
    clients,
    clock,
    consents,
    envelope,
    keys,
    request_log,
    shared,
    switches,
)
from django_identity.sandbox.envelope import Refused
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.models import (
    CONNECT_CODE_LIFETIME,
    Client,
    ConnectCode,
    Consent,
    User,
)
from django_identity.sandbox.people.forms import PasswordForm
from django_identity.sandbox.people.pages import signed_in_user

PROFILE_BASIC = "profile:basic"
KYC_STATUS = "kyc:status"
SCOPES = (PROFILE_BASIC, KYC_STATUS)
INVALID_CONNECT_CODE = "INVALID_CONNECT_CODE"
CONNECT_CODE_REQUIRED = "CONNECT_CODE_REQUIRED"
INVALID_SCOPE = "INVALID_SCOPE"
KYC_LEVEL_REQUIRED = "KYC_LEVEL_REQUIRED"
POA_REQUIRED = "POA_REQUIRED"
RETIRED_MEMBER = "infra_user_id"
_SHAPE = re.compile(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}")
_MESSAGES = {
    INVALID_CONNECT_CODE: "The code is missing, unknown, used or expired.",
    CONNECT_CODE_REQUIRED: "Ask the user for a Connect code and send it as connect_code.",
    INVALID_SCOPE: f"The scopes are {', '.join(SCOPES)}.",
    envelope.ENVIRONMENT_MISMATCH: envelope.MISMATCH_MESSAGE,
    KYC_LEVEL_REQUIRED: "The user's KYC level is below what this application requires.",
    POA_REQUIRED: "This application requires proof of address.",
}


def make_code(user: User) -> ConnectCode:
    """Create a code for ``user``. Earlier codes stay valid."""
    letters = string.ascii_uppercase + string.digits
    chosen = "".join(secrets.choice(letters) for _ in range(8))
    now = clock.now()
    ends = now + CONNECT_CODE_LIFETIME
    return ConnectCode.objects.create(
        user=user,
        code=f"CNX-{chosen[:4]}-{chosen[4:]}",
        created_at=now,
        expires_at=ends,
    )


@envelope.endpoint("POST")
def connect_request(request: HttpRequest) -> HttpResponse:
    """POST /connect/request: redeem a Connect code for an application."""
    client, secret = clients.authenticate(request)
    code, scopes = _read(envelope.members_of(request))
    user = _redeem(client, code, scopes)
    request_log.note(request, user, client)
    return envelope.success(_result(user, secret, scopes))


def _refused(code: str) -> Refused:
    """Build an error, with the address where a person meets a requirement (spec: Errors)."""
    beside: dict[str, Any] = {}
    if code in {KYC_LEVEL_REQUIRED, POA_REQUIRED}:
        kyc_url = settings.SANDBOX_ORIGIN + reverse("verify")
        beside = {"kyc_required": True, "kyc_url": kyc_url}
    status = 400
    if beside or code == envelope.ENVIRONMENT_MISMATCH:
        status = 403
    return Refused(status, code, _MESSAGES[code], **beside)


def _read(members: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return code and scopes. What cannot be read is refused before any code is looked at."""
    code = members.get("connect_code")
    if code in (None, ""):
        is_required = switches.current().missing_connect_code == "required"
        if is_required or RETIRED_MEMBER in members:
            raise _refused(CONNECT_CODE_REQUIRED)
    if not isinstance(code, str) or not code:
        raise _refused(INVALID_CONNECT_CODE)

    scopes = members.get("scopes")
    is_list = isinstance(scopes, list) and all(
        isinstance(scope, str) for scope in scopes
    )
    if not scopes or not is_list:
        raise Invalid("scopes must be an array of strings, and not empty.")
    if members.get("callback_url") is not None:
        envelope.http_address("callback_url", members["callback_url"])
    return code, list(dict.fromkeys(scopes))


def _redeem(client: Client, code: str, scopes: Sequence[str]) -> User:
    """Spend the code, return its person, and record and announce the consent.

    Raises:
        Refused: no data was shared.
    """
    with transaction.atomic():
        spent = _spend(code, client)
        if spent is None:
            raise _refused(INVALID_CONNECT_CODE)
        user = spent.user
        spent.refusal = _refusal(user, client, scopes)
        if not spent.refusal:
            consent = Consent.objects.filter(user=user, client=client, revoked_at=None)
            standing = consent.values_list("scopes", flat=True).first() or []
            consents.grant(user, client, dict.fromkeys([*standing, *scopes]))
            consents.tell(user, client, scopes)
            return user
        spent.save(update_fields=["refusal"])
    raise _refused(spent.refusal)  # after the commit, so that the code stays spent


def _spend(code: str, client: Client) -> ConnectCode | None:
    """Spend ``code``. Return it, or None if there is no such valid code.

    One conditional UPDATE decides, so only one of several concurrent requests gets the code.
    """
    now = clock.now()
    valid = ConnectCode.objects.filter(code=code, used_at=None, expires_at__gt=now)
    if not _SHAPE.fullmatch(code) or not valid.update(used_at=now, used_by=client):
        return None
    return ConnectCode.objects.select_related("user").get(code=code)


def _refusal(user: User, client: Client, scopes: Sequence[str]) -> str:
    """Return the error code if the data of ``user`` is not shared, or nothing."""
    if not set(scopes) <= set(SCOPES):
        return INVALID_SCOPE
    if user.environment != client.environment:
        return envelope.ENVIRONMENT_MISMATCH
    application = client.registered
    if user.kyc_level < application.connect_kyc_level:  # their names sort as they rank
        return KYC_LEVEL_REQUIRED
    if application.connect_proof_of_address and user.address_proved_at is None:
        return POA_REQUIRED
    return ""


def _result(user: User, secret: str, scopes: Sequence[str]) -> dict[str, Any]:
    """Build the answer and sign it."""
    data: dict[str, Any] = {}
    if PROFILE_BASIC in scopes:
        data["profile"] = {name: getattr(user, name) for name in shared.PROFILE_BASIC}
    if KYC_STATUS in scopes:
        data["kyc"] = shared.kyc(user)

    if switches.current().connect_nested:
        data = {"data": data}
    result = {
        "status": "approved",
        "request_id": f"req_{uuid.uuid4().hex}",
        "user_id": user.subject,
        **data,
        "issued_at": clock.timestamp(clock.now()),
    }
    return result | {"signature": _signature(result, secret)}


def _signature(result: Mapping[str, Any], secret: str) -> str:
    """Sign the canonical JSON of ``result`` with the method of the switch."""
    content = json.dumps(
        result,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    ).encode()
    if switches.current().connect_signature == "jws":
        header, _payload, signature = keys.sign(content).split(".")
        return f"{header}..{signature}"  # detached (RFC 7515, appendix F)
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


@sensitive_post_parameters("password")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new_code(request: HttpRequest) -> HttpResponse:
    """Show what will be shared; make a code once the password is confirmed."""
    user = signed_in_user(request)
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        if user.check_password(form.cleaned_data["password"]):
            return redirect("connect_code", number=make_code(user).pk)
        form.add_error("password", "That is not your password.")
    context = {
        "form": form,
        "person": user,
        "scopes": consents.described(SCOPES),
    }
    return render(request, "sandbox/make_connect_code.html", context)


@login_required
@require_safe
def show_code(request: HttpRequest, number: int) -> HttpResponse:
    """Show a code of the person's own, and how long it is valid."""
    code = get_object_or_404(ConnectCode, user=signed_in_user(request), pk=number)
    left = (code.expires_at - clock.now()).total_seconds()
    context = {
        "code": code,
        "seconds_left": max(0, math.ceil(left)),
        "lifetime": int(CONNECT_CODE_LIFETIME.total_seconds()),
    }
    return render(request, "sandbox/connect_code.html", context)
