"""Documents of the trusted tier, for a site's own views. It needs ``django-identity[trusted]``.

::

    def passport(request):
        for document in documents_of(request):
            if document.document_type == "passport":
                return document_response(document)

A document is held only in memory. Do not store, log or cache it.

``keys``: how one is opened · ``reading``: whose are read · ``pages``: for the site's views
"""

from django_identity.documents.pages import document_response, documents_of
from django_identity.service.answers import Document

__all__ = ["Document", "document_response", "documents_of"]
