"""Control of sign-ins: what a person does between an application's address and its callback."""

from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from django_identity.sandbox.control.body import Body, InvalidRequest
from django_identity.sandbox.control.users import user_of
from django_identity.sandbox.pages.consent import AuthorizationPage

_REDIRECT = 302


def decide(body: Body) -> dict[str, Any]:
    """POST authorizations: sign ``user_id`` in at the address ``url``, and approve or deny.

    ``decline``: scopes of documents that the person leaves out of an approval.
    The answer is the callback address that the browser would open. What the consent screen would
    refuse on a page of its own is refused here.
    """
    parts = urlsplit(body.text("url"))
    if parts.path != reverse("authorize"):
        raise InvalidRequest(f"{parts.path} is not the authorization endpoint.")
    user, denied = user_of(body.text("user_id")), body.flag("deny")
    if not user.is_active:
        raise InvalidRequest("The account is closed: its person asked for deletion.")
    request = HttpRequest()
    request.method, request.path = "POST", parts.path
    request.path_info = parts.path
    request.META["QUERY_STRING"] = parts.query
    form = {"deny" if denied else "allow": "1", "decline": body.texts("decline")}
    request.GET, request.POST = QueryDict(parts.query), QueryDict(urlencode(form, doseq=True))
    request.user = user
    answer = AuthorizationPage.as_view()(request)
    if answer.status_code != _REDIRECT:
        raise InvalidRequest(
            "The person would see an error page: the client or its redirect address is unknown, or "
            "the person is of the other environment."
        )
    return {"callback": answer["Location"]}
