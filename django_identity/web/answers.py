"""What a callback or an erasure answered, kept for an hour: the page may be loaded again.

It is kept in a sealed cookie of the browser: an erased person, or one who was refused at a sign-up,
has no row, and the address says nothing about them.
"""

import json
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from django_identity import conf, vault
from django_identity.exceptions import IdentityError, SealedValueUnreadable
from django_identity.secrets import Secret
from django_identity.web.browser import browser_key_of
from django_identity.web.flow import problem_page
from django_identity.web.pages import address_of

COOKIE = "identity_answer"
KEPT_FOR = 3600
#: What the page of a callback's error needs.
FACTS = ("code", "reference", "retry_after", "next_url", "masked")
NO_RECEIPT = 0


def keep_error(request: HttpRequest, error: IdentityError) -> HttpResponseBase:
    """Lead to the page of ``error``, in a browser that keeps our cookies."""
    if browser_key_of(request) is None:
        return problem_page(request, error)
    facts = {name: getattr(error, name, "") for name in FACTS}
    return _kept(request, facts)


def keep_receipt(request: HttpRequest, number: int) -> HttpResponseBase:
    """Lead to the page that shows the receipt."""
    return _kept(request, number)


def kept_by(request: HttpRequest) -> IdentityError | int:
    """The error, or the number of the receipt. A browser drops the cookie after the hour."""
    try:
        opened = vault.unseal(
            request.COOKIES.get(COOKIE, ""),
            keys=conf.application().encryption_keys,
            context=_context(request),
        )
    except SealedValueUnreadable:
        return NO_RECEIPT
    answer: Any = json.loads(opened.reveal())
    if isinstance(answer, int):
        return answer
    error = IdentityError()
    for name in FACTS:
        setattr(error, name, answer[name])
    return error


def _context(request: HttpRequest) -> vault.Context:
    """It opens in its own browser alone: another host of the domain may set cookies, too."""
    return ("answer", browser_key_of(request) or "")


def _kept(request: HttpRequest, answer: object) -> HttpResponseRedirect:
    page = address_of("answer")
    response = HttpResponseRedirect(page)
    sealed = vault.seal(
        Secret(json.dumps(answer, ensure_ascii=False)),
        keys=conf.application().encryption_keys,
        context=_context(request),
    )
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
