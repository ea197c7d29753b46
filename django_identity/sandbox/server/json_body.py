"""Reading the JSON object that an application posts."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError


def members_of(request: HttpRequest) -> Mapping[str, Any] | None:
    """Return the members of the body, or none if it is not a JSON object of a bearable size."""
    try:
        members = json.loads(request.body)
    except (ValueError, RecursionError, RequestDataTooBig, UnreadablePostError):
        return None
    return members if isinstance(members, dict) else None
