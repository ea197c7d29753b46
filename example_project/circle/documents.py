"""A member's documents: the trusted tier, with a picture for its owner alone.

Only these pages ask for them, so the person allows them here, and not at the first sign-in.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from django_identity.documents import document_response, documents_of
from django_identity.gates import scope_required


@scope_required("documents:read")
@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    """List the documents, with a thumbnail of the passport."""
    return render(
        request,
        "circle/documents.html",
        {"documents": documents_of(request)},
    )


@scope_required("documents:read")
@require_GET
def passport(request: HttpRequest) -> HttpResponse:
    """The picture of the passport. It is opened in memory for this response only."""
    for document in documents_of(request):
        if document.document_type == "passport":
            return document_response(document)
    raise Http404
