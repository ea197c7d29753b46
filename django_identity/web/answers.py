"""What a callback or an erasure answered, kept for an hour: the page may be loaded again.

It is kept in a sealed cookie of the browser. The address says nothing about the person, and no row
says who was refused or erased.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseRedirect

from django_identity import conf, vault
from django_identity.exceptions import FlowError, IdentityError, SealedValueUnreadable
from django_identity.secrets import Secret
from django_identity.web.pages import address_of

COOKIE = "identity_answer"
KEPT_FOR = 3600
CONTEXT = ("answer",)
#: What the page of an error needs, beside the code.
FACTS = ("reference", "next_url", "kyc_url", "service_code", "masked")
#: Browsers drop a longer cookie.
LONGEST = 3800


@dataclass(frozen=True, slots=True)
class Answer:
    """One of them: the error, or the number of the receipt."""

    error: IdentityError | None = None
    receipt: int | None = None


def keep_error(request: HttpRequest, error: IdentityError) -> HttpResponseRedirect:
    """Lead to the page that shows ``error``."""
    facts = {name: getattr(error, name, "") for name in FACTS}
    facts["retry_at"] = time.time() + error.retry_after
    sealed = _sealed(code=error.code, **facts)
    if len(sealed) > LONGEST:
        sealed = _sealed(code=error.code, **facts | {"next_url": ""})
    return _led(request, sealed)


def keep_receipt(request: HttpRequest, number: int) -> HttpResponseRedirect:
    """Lead to the page that shows the receipt."""
    return _led(request, _sealed(receipt=number))


def kept(request: HttpRequest) -> Answer:
    """The answer in the browser's cookie. Empty if there is none, or its hour is over."""
    sealed = request.COOKIES.get(COOKIE, "")
    try:
        opened = vault.unseal(sealed, keys=_keys(), context=CONTEXT)
    except SealedValueUnreadable:
        return Answer()
    facts: dict[str, Any] = json.loads(opened.reveal())
    now = time.time()
    if facts["until"] <= now:
        return Answer()
    if "receipt" in facts:
        return Answer(receipt=facts["receipt"])
    wait = max(0, facts["retry_at"] - now)
    error = FlowError(code=facts["code"], retry_after=wait)
    for name in FACTS:
        setattr(error, name, facts[name])
    return Answer(error)


def _sealed(**facts: object) -> str:
    facts["until"] = time.time() + KEPT_FOR
    text = Secret(json.dumps(facts, ensure_ascii=False))
    return vault.seal(text, keys=_keys(), context=CONTEXT)


def _keys() -> tuple[Secret, ...]:
    return conf.application().encryption_keys


def _led(request: HttpRequest, sealed: str) -> HttpResponseRedirect:
    page = address_of("answer")
    response = HttpResponseRedirect(page)
    response.set_cookie(
        COOKIE,
        sealed,
        max_age=KEPT_FOR,
        path=page,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return response
