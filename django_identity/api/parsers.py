"""The one reader of what is sent to the API: a JSON object, bounded in length and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from django_identity.service.json_body import UnreadableJson, read_object

LARGEST_BODY = 64 * 1024


class BodyTooLarge(APIException):
    """More than any request to this API needs."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"
    default_detail = "The body is too large."


class BoundedJSONParser(BaseParser):
    """Reads with the same reader as the service's answers and events, 64 KB at most.

    Django REST framework's own parser has no bounds: 200,000 brackets end in a ``RecursionError``.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        body = stream.read(LARGEST_BODY + 1)
        if len(body) > LARGEST_BODY:
            raise BodyTooLarge
        try:
            return read_object(body)
        except UnreadableJson as error:
            raise ParseError(f"The body is no JSON object that can be read: {error}.") from None
