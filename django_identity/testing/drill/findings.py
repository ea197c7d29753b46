"""What is wrong with a site, in a sentence that names the cause or the place."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.utils.cache import get_max_age
from django.utils.module_loading import import_string

from django_identity.gates.site_map import Address
from django_identity.testing.drill.doors import Door

#: Not the site's own code.
FRAMEWORKS = ("django.", "django_identity.", "rest_framework.")


def beside(found: Sequence[Address]) -> Iterator[str]:
    """Open addresses whose view, or a base of whose view, has a gate at another address."""
    gated = {address.view: address.url for address in found if address.gates}
    for address in found:
        if address.reading.guards or address.view.startswith(FRAMEWORKS):
            continue
        view: Any = None
        with suppress(ImportError):
            view = import_string(address.view)
        for base in getattr(view, "__mro__", [view]):
            name = f"{getattr(base, '__module__', '')}.{getattr(base, '__qualname__', '')}"
            if name in gated:
                yield f"`{address.url}` is open beside `{gated[name]}`: the view {name}, no gate"


def cached(path: str, response: Any) -> str:
    """Where a response stays that no cache may store, or an empty text."""
    said = response.headers.get("Cache-Control", "")
    if "private" in said or "no-store" in said or response.status_code != 200:
        return ""
    names = [name for name in settings.MIDDLEWARE if "UpdateCache" in name]
    cause = names or [f"Cache-Control: {said}"]
    return f"`{path}` stays in a cache for {get_max_age(response)} s: `{cause[0]}`"


def who_is_there(response: Any) -> str:
    """Why ``request.user`` is somebody else than has to be."""
    if response.wsgi_request.user != get_user(response.wsgi_request):
        own = [name for name in settings.MIDDLEWARE if not name.startswith(FRAMEWORKS)]
        return f"`request.user` is not the session's; perhaps by {', '.join(own)}"
    return f"{settings.SESSION_ENGINE}, or the site's own code"


def cause_of_open(door: Door, response: Any) -> str:
    if getattr(response.wsgi_request, "_cache_update_cache", None) is False:
        return "a cache answers"
    if door.own_code:
        return f"`{door.own_code}` answers before the gate"
    return "its view answers, and no gate does"


def trouble_in(response: Any) -> str:
    """Why a page is not what it has to be: the exception and its place, or an error's code."""
    failure = getattr(response, "exc_info", None)
    if failure:
        place = traceback.extract_tb(failure[2])[-1]
        return f"{failure[0].__name__} in {place.filename}, line {place.lineno}"
    with suppress(KeyError, TypeError):
        return f"`{response.context['error'].code}`"
    return f"status {response.status_code}"
