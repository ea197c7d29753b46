"""What is wrong with a site, in a sentence that names the cause or the place."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
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
    cause = f"`{names[0]}`" if names else "nothing says that it is private"
    return f"`{path}` stays in a cache for {get_max_age(response) or '?'} s: {cause}"


def cause_of(door: Door | None, response: Any, *, is_over: bool) -> str:
    """Why an address is open or closed that has to be otherwise. ``is_over``: so is the session."""
    request = response.wsgi_request
    if getattr(request, "_cache_update_cache", None) is False:
        return "a cache answers"
    is_somebody = request.user.is_authenticated
    if request.user != getattr(request, "_cached_user", None):
        own = [name for name in settings.MIDDLEWARE if not name.startswith(FRAMEWORKS)]
        return f"`request.user` is not the session's, perhaps by {', '.join(own)}"
    if is_over and is_somebody:
        return f"the session is not over, by {settings.SESSION_ENGINE} or another back end"
    if door and door.own_code:
        return f"`{door.own_code}` answers before the gate"
    return "the site's own code answers before the gate"


def trouble_in(response: Any) -> str:
    """Why a page is not what it has to be: the exception and its place, or an error's code."""
    failure = getattr(response, "exc_info", None)
    if failure:
        return described(failure[1])
    with suppress(KeyError, TypeError):
        return f"`{response.context['error'].code}`"
    return f"status {response.status_code}"


def described(error: BaseException) -> str:
    """An error of the site's code with its place."""
    trace = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in trace if "site-packages" not in frame.filename] or trace
    return f"{type(error).__name__} in {own[-1].filename}, line {own[-1].lineno}: {error}"
