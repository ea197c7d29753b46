"""What is wrong with a site, in a sentence that names the cause or the place."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.cache import get_max_age
from django.utils.module_loading import import_string

from django_identity import conf, policy
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
        kind: Any = None
        with suppress(ImportError):
            kind = import_string(address.view)
        bases = [
            f"{each.__module__}.{each.__qualname__}"
            for each in getattr(kind, "__mro__", ())
        ]
        for name in {address.view, *bases} & gated.keys():
            yield f"`{address.url}` is open beside `{gated[name]}`: the view {name}, no gate"


def cached(path: str, response: Any) -> str:
    """Where a response stays that no cache may store, or an empty text."""
    said = response.headers.get("Cache-Control", "")
    if "private" in said or "no-store" in said or response.status_code != 200:
        return ""
    age = get_max_age(response)
    time = "" if age is None else f" for {age} s"
    names = [name for name in settings.MIDDLEWARE if "UpdateCache" in name]
    cause = names[0] if names else "nothing says that it is private"
    return f"`{path}` stays in a cache{time}: {cause}"


def cause_of(door: Door, response: Any) -> str:
    """Why a door is open that has to be closed, or the other way round."""
    if getattr(response.wsgi_request, "_cache_update_cache", None) is False:
        return "a cache answers"
    return (
        replaced_user(response)
        or f"{door.own_code or 'the site'} answers before the gate"
    )


def replaced_user(response: Any) -> str:
    """Which middleware may have put somebody else into ``request.user``. Empty if none has."""
    user = response.wsgi_request.user
    # Django's own is lazy, and remembers whom the session names.
    is_of_session = user == getattr(response.wsgi_request, "_cached_user", None)
    if is_of_session or not user.is_authenticated:
        return ""
    own = [name for name in settings.MIDDLEWARE if not name.startswith(FRAMEWORKS)]
    return f"`request.user` is not the session's, perhaps by {', '.join(own)}"


def trouble_in(response: Any) -> str:
    """Why a page is not what it has to be: the exception and its place, or an error's code."""
    failure = getattr(response, "exc_info", None)
    if failure:
        return described(failure[1])
    with suppress(KeyError, TypeError):
        return f"{response.context['error'].code}"
    return f"status {response.status_code}"


def described(error: BaseException) -> str:
    """An error of the site's code with its place."""
    trace = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in trace if "site-packages" not in frame.filename]
    place = (own or trace)[-1]
    return f"{type(error).__name__} in {place.filename}, line {place.lineno}: {error}"


def files_of_media() -> set[Path]:
    """All files under MEDIA, by their names there."""
    media = Path(settings.MEDIA_ROOT)
    return {path.relative_to(media) for path in media.rglob("*") if path.is_file()}


def error_of_policy(user: Any) -> str:
    """What the site's own code raises in an erasure. The receipt has only the error's class."""
    try:
        policy.load(conf.applications()[0].policy).erase_user(user)
    except Exception as error:  # noqa: BLE001  it is the site's own code
        return described(error)
    return ""
