"""What is wrong with a site, in a sentence that names the cause or the place."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.cache import get_max_age

from django_identity import policy
from django_identity.instruments.gate_map import Address

#: Not the site's own code.
FRAMEWORKS = ("django.", "django_identity.", "rest_framework.")


def beside(found: Sequence[Address]) -> Iterator[str]:
    """Open addresses whose view has a gate at another address."""
    gated = {address.view: address.url for address in found if address.gates}
    for address in found:
        is_open = not address.reading.guards
        if is_open and address.view in gated:
            yield (
                f"`{address.url}` is open beside `{gated[address.view]}`: "
                f"the view {address.view}, no gate"
            )


def cached(path: str, response: Any) -> str:
    """Where a response stays that no cache may store, or an empty text."""
    directives = response.headers.get("Cache-Control", "")
    is_private = "private" in directives or "no-store" in directives
    if is_private or response.status_code != 200:
        return ""
    time = ""
    age = get_max_age(response)
    if age is not None:
        time = f" for {age} s"
    cause = "nothing says that it is private"
    for name in settings.MIDDLEWARE:
        if "UpdateCache" in name:
            cause = name
    return f"`{path}` stays in a cache{time}: {cause}"


def replaced_user(response: Any) -> str:
    """Which middleware may have put somebody else into ``request.user``. Empty if none has."""
    user = response.wsgi_request.user
    # Django's own is lazy, and remembers whom the session names.
    of_session = getattr(response.wsgi_request, "_cached_user", None)
    if user == of_session or not user.is_authenticated:
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
    place = trace[-1]
    for frame in trace:
        if "site-packages" not in frame.filename:
            place = frame
    return f"{type(error).__name__} in {place.filename}, line {place.lineno}: {error}"


def files_of_media() -> Iterator[Path]:
    """All files under MEDIA, by their names there."""
    media = Path(settings.MEDIA_ROOT)
    for path in media.rglob("*"):
        if path.is_file():
            yield path.relative_to(media)


def error_of_policy(user: Any) -> str:
    """What the site's own code raises in an erasure. The receipt has only the error's class."""
    try:
        policy.of_site().erase_user(user)
    except Exception as error:  # noqa: BLE001  it is the site's own code
        return described(error)
    return ""
