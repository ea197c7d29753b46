"""The answers about documents as frozen values. Their ``repr`` shows nothing.

The specification shows no fields of documents. These are the sandbox's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from django_identity.exceptions import MalformedAnswer
from django_identity.service.answers.members import (
    LONGEST_CODE,
    Members,
    required_line,
    text_of,
)

METADATA: Final = "document_metadata"
DOCUMENTS: Final = "documents"
SCOPE_OF: Mapping[str, str] = {METADATA: "documents:metadata", DOCUMENTS: "documents:read"}
MOST_DOCUMENTS = 20
# For all documents of an answer together. One alone is limited when it is opened.
LARGEST_DOCUMENTS = 24 * 1024 * 1024

T = TypeVar("T")
Parser = Callable[[Members, str], T]


@dataclass(frozen=True, slots=True, repr=False)
class DocumentMetadata:
    """What a document is, without its content. ``country`` and ``status`` may be empty."""

    document_type: str
    document_id: str
    country: str
    status: str

    @classmethod
    def parse(cls, body: Members, endpoint: str) -> DocumentMetadata:
        return cls(
            document_type=required_line(body, "document_type", endpoint, longest=LONGEST_CODE),
            document_id=text_of(body, "document_id", endpoint, longest=255),
            country=text_of(body, "country", endpoint, longest=LONGEST_CODE),
            status=text_of(body, "status", endpoint, longest=LONGEST_CODE),
        )


@dataclass(frozen=True, slots=True, repr=False)
class SealedDocument:
    """A document whose ``content`` is a compact JWE. ``content_type``: what it says to be."""

    metadata: DocumentMetadata
    content_type: str
    content: str

    @classmethod
    def parse(cls, body: Members, endpoint: str) -> SealedDocument:
        return cls(
            metadata=DocumentMetadata.parse(body, endpoint),
            content_type=required_line(body, "content_type", endpoint, longest=LONGEST_CODE),
            content=text_of(body, "content", endpoint, longest=LARGEST_DOCUMENTS),
        )


def parse_documents(body: Members, parse: Parser[T], *, endpoint: str) -> tuple[T, ...]:
    listed = body.get("documents")
    if not isinstance(listed, list) or len(listed) > MOST_DOCUMENTS:
        raise MalformedAnswer("documents is not a list of usable length", endpoint=endpoint)
    if not all(isinstance(each, dict) for each in listed):
        raise MalformedAnswer("a document is not an object", endpoint=endpoint)
    return tuple(parse(each, endpoint) for each in listed)
