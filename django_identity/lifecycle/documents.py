"""Documents of the trusted tier: asked for, opened in memory, handed over, and not kept.

The database keeps that they were read: when, by which view, of which types. It needs the extra
``django-identity[trusted]``.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from django.contrib.auth.models import AbstractBaseUser
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, policy
from django_identity.credentials.documents import open_document
from django_identity.exceptions import DocumentsNotAllowed, IdentityError
from django_identity.lifecycle.upkeep.tokens import Reader
from django_identity.models import Consent, DocumentReading, LinkedIdentity
from django_identity.service import ServiceClient
from django_identity.service.answers import DocumentMetadata, SealedDocument
from django_identity.service.answers.documents import DOCUMENTS, METADATA, SCOPE_OF
from django_identity.telemetry import LogEvent, log, log_failure

LONGEST_VIEW = 255


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """An opened document. Its ``repr`` shows nothing, and it cannot be pickled into a cache."""

    document_type: str
    document_id: str
    country: str
    status: str
    content_type: str
    content: bytes

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("documents are not kept")


@dataclass(frozen=True, slots=True)
class Reading:
    """Whose documents are read, who asks, and the name of the page that shows them."""

    identity: LinkedIdentity
    asked_by: AbstractBaseUser
    view: str


@sensitive_variables()
def read(reading: Reading) -> tuple[Document, ...]:
    """The person's documents, opened.

    Raises ``DocumentsNotAllowed``, ``DocumentUnreadable`` if one of them cannot be opened,
    ``ReauthorizationNeeded``, ``ConfigurationError`` or a ``ServiceError``. Then nothing is stored.
    """
    with _asking(reading, scope=SCOPE_OF[DOCUMENTS]) as asked:
        subject, client = asked.identity.subject, asked.client
        sealed = asked.read(lambda token: client.documents(subject, access_token=token))
        opened = tuple(_open(each, asked.application) for each in sealed)
        _record(reading, SCOPE_OF[DOCUMENTS], [each.document_type for each in opened])
    return opened


@sensitive_variables()
def read_metadata(reading: Reading) -> tuple[DocumentMetadata, ...]:
    """Which documents the person has, without their content. Raises like ``read``."""
    with _asking(reading, scope=SCOPE_OF[METADATA]) as asked:
        subject, client = asked.identity.subject, asked.client
        listed = asked.read(lambda token: client.document_metadata(subject, access_token=token))
        _record(reading, SCOPE_OF[METADATA], [each.document_type for each in listed])
    return listed


@contextmanager
def _asking(reading: Reading, *, scope: str) -> Iterator[Reader]:
    """Read in the person's name, if the policy and the consent cover ``scope``; log the end."""
    identity, alias = reading.identity, reading.identity.application
    application = conf.application(alias)
    try:
        site = policy.load(application.policy)
        if not site.may_read_documents(reading.asked_by, identity, scope=scope):
            raise DocumentsNotAllowed("the policy refuses")
        _require_consent(identity, scope)
        yield Reader(application, identity, ServiceClient(application))
    except IdentityError as error:
        log_failure(LogEvent.DOCUMENTS_FAILED, error, application=alias)
        raise
    log(LogEvent.DOCUMENTS_READ, application=alias, view=reading.view)


def _require_consent(identity: LinkedIdentity | None, scope: str) -> LinkedIdentity:
    if identity is None or identity.consent != Consent.GRANTED or scope not in identity.scopes:
        raise DocumentsNotAllowed(f"no consent covers {scope}")
    return identity


@sensitive_variables()
def _open(sealed: SealedDocument, application: conf.Application) -> Document:
    described = sealed.metadata
    return Document(
        document_type=described.document_type,
        document_id=described.document_id,
        country=described.country,
        status=described.status,
        content_type=sealed.content_type,
        content=open_document(
            sealed.content, keys=application.document_keys, content_type=sealed.content_type
        ),
    )


def _record(reading: Reading, scope: str, document_types: Iterable[str]) -> None:
    """Record the reading, unless the consent was withdrawn while the service answered."""
    with database.atomic():
        rows = LinkedIdentity.objects.select_for_update().filter(pk=reading.identity.pk)
        DocumentReading.objects.create(
            identity=_require_consent(rows.first(), scope),
            read_by_id=reading.asked_by.pk,
            scope=scope,
            document_types=list(document_types),
            view=reading.view[:LONGEST_VIEW],
        )
