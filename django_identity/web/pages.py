"""Pages for people: their addresses, the names that all of them use, their words."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from django_identity import policy
from django_identity.exceptions import IdentityError, StorageUnavailable
from django_identity.lifecycle.standing.standing import standing_with
from django_identity.models import LinkedIdentity
from django_identity.policy.names import names_for
from django_identity.reasons import Reason
from django_identity.service.webhooks import VERIFIED
from django_identity.texts import advice
from django_identity.web.sessions import why_session_ended

#: Marks our messages among those of the site.
OURS = "identity"
#: Both, because caches ignore ``no-store``: as late as in 5.2.12 Django's own did.
NEVER_CACHED = "private, no-store"


def path_of(request: HttpRequest, *, with_query: bool = False) -> str:
    """The request's path with the site's script prefix.

    ``request.path`` lacks the prefix under ASGI if a proxy takes it away before the site.
    """
    path = request.path_info
    if with_query:
        path = request.get_full_path_info()
    return f"{request.META.get('SCRIPT_NAME', '').rstrip('/')}{path}"


def address_of(name: str, **query: str) -> str:
    """The path of the page ``name``, which carries ``query`` on. Empty texts are left out."""
    carried = {key: text for key, text in query.items() if text}
    return reverse(f"identity:{name}", query=carried)


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    is_closed: bool = False,
    reads_session: bool = True,
) -> HttpResponse:
    """Render ``template`` with the names that every page uses.

    Above a closed gate (``is_closed``) and an ended session, our older messages would contradict
    the page. They are dropped. ``reads_session``: not if the database is away, which may have it.
    """
    ended = ""
    ended_at = None
    if reads_session:
        ended, ended_at = why_session_ended(request)
    # Without an origin browsers would send the forms of a site's own frame as ``null``, and without
    # an address ``set_language`` would not lead back. The address of a callback has the code.
    referrer = "same-origin"
    if "state" in request.GET:
        referrer = "strict-origin"
    names: dict[str, Any] = {
        **names_for(request),
        "referrer": referrer,
        "page_links": advice.page_links(),
        "here": path_of(request),
        "session_ended": ended,
        "session_ended_at": ended_at,
    }
    if not reads_session:
        names["messages"] = []
    elif is_closed or ended:
        names["messages"] = [
            message for message in get_messages(request) if message.extra_tags != OURS
        ]
    names.update(context or {})
    return render(request, template, names, status=status)


def tell(request: HttpRequest, message: str) -> None:
    """Show ``message`` on the next page that shows messages, unless a gate is closed there."""
    messages.success(request, message, extra_tags=OURS, fail_silently=True)


def why_asked(asked: str) -> str:
    """The site's own explanation of a scope, a claim or a level, or an empty text.

    A claim with values may have one of its own, or that of the claim's name.
    """
    reasons = policy.of_site().reasons
    claim_type = asked.partition("=")[0]
    return str(reasons.get(asked) or reasons.get(claim_type, ""))


def explained(scopes: Iterable[str]) -> list[tuple[str, str]]:
    """Each scope with the site's own explanation."""
    return [(scope, why_asked(scope)) for scope in scopes]


def error_page(
    request: HttpRequest,
    template: str,
    error: IdentityError,
    context: Mapping[str, Any],
    *,
    by_code: bool = False,
) -> HttpResponse:
    """Render ``template`` with the title and the sentence of ``error``, and its status.

    ``by_code``: a Connect code failed.
    """
    title, sentence = advice.words_of(error, request)
    if not title and by_code:
        title = _("Your code was not accepted")
    elif not title:
        title = _("We could not sign you in")
    names = {
        **context,
        "error": error,
        "error_title": title,
        "error_sentence": sentence,
        "error_button": advice.row_of(error).button,
        "has_own_reason": error.code in policy.of_site().reasons,
    }
    response = page(
        request,
        template,
        names,
        status=error.http_status,
        reads_session=not isinstance(error, StorageUnavailable),
    )
    seconds = math.ceil(error.retry_after)
    if seconds:
        response["Retry-After"] = str(seconds)
    return response


def status_words(identity: LinkedIdentity) -> str:
    """A status line: how far the person is verified."""
    status = standing_with(identity, ()).kyc_status_now
    if status == Reason.RUN_OUT:
        return str(advice.REASONS[status].title)
    if status != VERIFIED:
        return _("You are not verified yet.")
    level = identity.kyc_level.removeprefix("level_")
    if not level:
        return _("You are verified.")
    return _("You are verified at level %(level)s.") % {"level": level}
