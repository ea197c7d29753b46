"""The parser of request bodies: one JSON object, with limits for length and depth."""

from typing import IO, Any

from django.http import UnreadablePostError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from django_identity.strict_json import NotStrictJSON, read_object

LARGEST_BODY = 64 * 1024


class BoundedJSONParser(BaseParser):
    """Reads at most 64 KB, with the same reader as the service's answers and events.

    Django REST framework's own parser is unlimited: 200,000 brackets raise ``RecursionError``.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: Any = None,
        parser_context: Any = None,
    ) -> dict[str, Any]:
        try:
            body = stream.read(LARGEST_BODY + 1)
        except UnreadablePostError:
            raise ParseError("The body did not arrive whole.") from None
        if len(body) > LARGEST_BODY:
            raise ParseError("The body is too large.")
        try:
            return read_object(body)
        except NotStrictJSON as error:
            raise ParseError(
                f"The body is no JSON object that can be read: {error}.",
            ) from None
