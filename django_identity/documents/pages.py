"""For a site's own views: the documents of a person, and a response that shows one."""

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse

from django_identity.boundary import boundary
from django_identity.documents import reading
from django_identity.exceptions import DocumentsNotAllowed
from django_identity.gates.closed import keep_private
from django_identity.lifecycle.standing.standing import may_have_standing
from django_identity.models import LinkedIdentity
from django_identity.service.answers import Document
from django_identity.web.flow import signed_in_user
from django_identity.web.pages import NEVER_CACHED


@boundary
def documents_of(
    request: HttpRequest,
    *,
    scope: str = reading.CONTENT,
    user: AbstractBaseUser | None = None,
) -> tuple[Document, ...]:
    """The documents of ``user``, by default of the signed-in person, opened in memory.

    With ``scope="documents:metadata"`` they have their metadata alone. The policy's
    ``may_read_documents`` decides, and the person must have consented to the scope. Each reading is
    a log line with the name of the request's view. Raises ``DocumentsNotAllowed`` (Django answers
    403) and what ``reading.read`` raises.
    """
    asked_by = signed_in_user(request)
    if asked_by is None:
        raise DocumentsNotAllowed("nobody is signed in")
    whose = user or asked_by
    # The key of anything else may be the key of somebody else's account.
    if not may_have_standing(whose):
        raise DocumentsNotAllowed("not an account of this site")
    identity = LinkedIdentity.objects.of_user(whose.pk)
    if identity is None:
        raise DocumentsNotAllowed("the person has no linked identity")
    # The name of the request's URL, or the dotted path of its view.
    view = ""
    if request.resolver_match is not None:
        view = request.resolver_match.view_name
    return reading.read(identity, scope=scope, asked_by=asked_by, view=view)


def document_response(document: Document) -> HttpResponse:
    """A response with ``document``, closed to caches."""
    response = HttpResponse(document.content, content_type=document.content_type)
    response["Cache-Control"] = NEVER_CACHED
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    keep_private(response)
    return response
