"""Documents of the trusted tier: asked for, opened in memory, handed over, and forgotten.

It needs the extra ``django-identity[trusted]``.
"""

from dataclasses import replace

from django.contrib.auth.models import AbstractBaseUser

from django_identity import conf, policy
from django_identity.documents.keys import open_document
from django_identity.exceptions import DocumentsNotAllowed, IdentityError
from django_identity.lifecycle.said.tokens import Reader
from django_identity.logs import LogEvent, log, log_failure
from django_identity.models import LinkedIdentity
from django_identity.service.answers import Document

METADATA = "documents:metadata"
CONTENT = "documents:read"


def read(
    identity: LinkedIdentity,
    *,
    scope: str,
    asked_by: AbstractBaseUser,
    view: str,
) -> tuple[Document, ...]:
    """The person's documents, opened with ``documents:read``, listed with ``documents:metadata``.

    ``view``: the name of the page that shows them. Raises ``DocumentsNotAllowed``,
    ``DocumentUnreadable`` if one of them cannot be opened, ``ReauthorizationNeeded``,
    ``ConfigurationError`` or a ``ServiceError``.
    """
    application = conf.application()
    try:
        is_allowed = policy.of_site().may_read_documents(
            asked_by,
            identity,
            scope=scope,
        )
        if not policy.is_yes(is_allowed, "may_read_documents"):
            raise DocumentsNotAllowed("the policy refuses")
        _require_consent(identity, scope)
        reader = Reader(identity)
        subject = identity.subject
        listed = reader.read(
            lambda token: reader.client.documents(
                subject,
                scope=scope,
                access_token=token,
            ),
        )
        documents = tuple(_opened(document, application, scope) for document in listed)
        # It may have been revoked while the service answered.
        _require_consent(LinkedIdentity.objects.filter(pk=identity.pk).first(), scope)
    except IdentityError as error:
        log_failure(LogEvent.DOCUMENTS_FAILED, error)
        raise
    log(
        LogEvent.DOCUMENTS_READ,
        view=view,
        scope=scope,
        row=identity.pk,
    )
    return documents


def _require_consent(identity: LinkedIdentity | None, scope: str) -> None:
    if identity is None or not identity.allows(scope):
        raise DocumentsNotAllowed(f"no consent covers {scope}")


def _opened(document: Document, application: conf.Application, scope: str) -> Document:
    if scope == METADATA:
        return replace(document, content_type="", content=b"")
    keys = application.document_keys
    sealed = document.content.decode()
    opened = open_document(sealed, keys=keys, content_type=document.content_type)
    return replace(document, content=opened)
