"""Which pattern of a URLconf answers an address.

Django takes the first pattern that matches. One sample of each address is resolved, such as
``/loans/7/`` of ``/loans/<int:key>/``.
"""

import re
from collections.abc import Iterable
from typing import Any

from django.urls import get_resolver
from django.urls.resolvers import RegexPattern

# What may stand in the place of a parameter, for each kind of converter.
WORDS = ("some-page", "7", "2026", "00000000-0000-4000-8000-000000000000", "some page")
GROUP = re.compile(r"\((?:\?P<\w+>)?[^()]*\)")


def route_of(patterns: Iterable[Any]) -> str:
    """The patterns as Django joins them for ``ResolverMatch.route``."""
    first, *others = map(str, patterns)
    return first + "".join(other.removeprefix("^") for other in others)


def answering_route(patterns: Iterable[Any]) -> str | None:
    """The route that answers a sample of the address of ``patterns``: its own, or an earlier one.

    None if nobody can tell: there is no sample for a difficult regex, and a converter of the site's
    own may raise anything.
    """
    try:
        sample = "".join(map(_sample_of, patterns))
        match = get_resolver().resolve(f"/{sample}")
    except Exception:  # noqa: BLE001  this calls the site's own converters
        return None
    return str(match.route)


def _sample_of(pattern: Any) -> str:
    """A text that the pattern matches. Raises ``LookupError`` if none is known."""
    if isinstance(pattern, RegexPattern):
        return _sample_of_regex(pattern)
    text = str(pattern)
    for name, converter in pattern.converters.items():
        fitting = [word for word in WORDS if re.fullmatch(converter.regex, word)]
        text = re.sub(rf"<(?:[^<>:]+:)?{name}>", fitting[0], text)
    return text


def _sample_of_regex(pattern: RegexPattern) -> str:
    route = str(pattern).removeprefix("^").removesuffix("$")
    for word in WORDS:
        text = GROUP.sub(word, route)
        match = pattern.regex.search(text)
        if match is not None and match.end() == len(text):
            return text
    raise LookupError
