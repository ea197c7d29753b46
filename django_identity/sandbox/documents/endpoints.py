"""GET /users/:userId/documents/metadata and GET /users/:userId/documents."""

from typing import Any

from django.http import HttpResponse

from django_identity.sandbox.documents import keys
from django_identity.sandbox.documents.papers import Paper, papers_of
from django_identity.sandbox.models import Client, User
from django_identity.sandbox.server import envelope
from django_identity.sandbox.users.endpoints import user_endpoint

TRUSTED_TIER_REQUIRED = "TRUSTED_TIER_REQUIRED"


@user_endpoint("documents:metadata")
def metadata(user: User, client: Client) -> HttpResponse:
    """Return the type, country and status of each document, without its content."""
    return _answer(user, [_metadata(paper) for paper in papers_of(user)])


@user_endpoint("documents:read")
def documents(user: User, client: Client) -> HttpResponse:
    """Return each document with its content, encrypted to the application's key."""
    key = client.registered.document_key
    if key is None:
        return envelope.error(
            403, TRUSTED_TIER_REQUIRED, "The application is not approved for the trusted tier."
        )
    listed = [
        {
            **_metadata(paper),
            "content_type": paper.content_type,
            "content": keys.encrypt(paper.content, key),
        }
        for paper in papers_of(user)
    ]
    return _answer(user, listed)


def _metadata(paper: Paper) -> dict[str, Any]:
    return {
        "document_id": paper.document_id,
        "document_type": paper.document_type,
        "country": paper.country,
        "status": paper.status,
    }


def _answer(user: User, listed: list[dict[str, Any]]) -> HttpResponse:
    answer = envelope.success({"user_id": user.subject, "documents": listed})
    answer["Cache-Control"] = "no-store"
    return answer
