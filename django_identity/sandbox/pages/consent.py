"""GET /oauth2/auth: the consent screen."""

from typing import Any
from urllib.parse import urlencode, urlsplit

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext_lazy as _
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.views.base import BaseAuthorizationView
from oauthlib.oauth2.rfc6749 import errors

from django_identity.sandbox.consents import consents
from django_identity.sandbox.consents.scopes import described
from django_identity.sandbox.models import Client, KycStatus
from django_identity.sandbox.oauth.redirect_addresses import differences
from django_identity.sandbox.pages.navigation import signed_in_user
from django_identity.sandbox.pages.verify import was_skipped

# A person may approve an application and keep their documents from it.
DECLINABLE = frozenset({"documents:metadata", "documents:read"})


# What the application is told (``error_description``) is ASCII, so English (RFC 6749, section
# 4.1.2.1). A person reads the page that stands in for an answer to an untrusted address.
_REASONS = {
    errors.MissingClientIdError: _("The request names no application (client_id)."),
    errors.InvalidClientIdError: _("No application has the client_id of the request."),
    errors.MissingRedirectURIError: _("The request names no redirect address."),
    errors.InvalidRedirectURIError: _("The redirect address of the request is not absolute."),
    errors.MismatchingRedirectURIError: _("The redirect address is not a registered one."),
    errors.InvalidRequestFatalError: _("A parameter is there twice, or cannot be read."),
}


class AuthorizationPage(BaseAuthorizationView):
    """Asks the person, each time, whether an application may have what it asks for.

    The request is read from the address on GET and on POST alike, so nothing in the form can
    change it.
    """

    http_method_names = ["get", "post"]

    def handle_no_permission(self) -> HttpResponse:
        """Check the request before a person is asked to sign in for it."""
        try:
            self.validate_authorization_request(self.request)
        except OAuthToolkitError as error:
            return self._refuse(error)
        sign_in = {"next": self.request.get_full_path()}
        return redirect(f"{resolve_url('sign_in')}?{urlencode(sign_in)}")

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the consent screen, by way of verification if the person has none."""
        try:
            scopes, credentials = self.validate_authorization_request(request)
        except OAuthToolkitError as error:
            return self._refuse(error)
        client = Client.objects.get(client_id=credentials["client_id"])
        user, here = signed_in_user(request), request.get_full_path()
        if user.environment != client.environment:
            return self._refuse_environment(client)
        if user.kyc_status != KycStatus.VERIFIED and not was_skipped(request, here):
            return redirect(f"{resolve_url('verify')}?{urlencode({'next': here})}")
        context = {
            "client": client,
            "person": user,
            "scopes": described(scopes),
            "declinable": DECLINABLE,
            "site": urlsplit(credentials["redirect_uri"]).netloc,
            "next": here,
        }
        return render(request, "sandbox/consent.html", context)

    @transaction.atomic
    def post(self, request: HttpRequest) -> HttpResponse:
        """Record the decision and send the person back to the application."""
        try:
            asked, credentials = self.validate_authorization_request(request)
            client = Client.objects.get(client_id=credentials["client_id"])
            user = signed_in_user(request)
            scopes = _shared(asked, declined=request.POST.getlist("decline"))
            allowed = "allow" in request.POST and bool(scopes)
            if user.environment != client.environment:
                return self._refuse_environment(client)
            if allowed:
                consents.grant(user, client, scopes)
            address = self._answer(" ".join(scopes), credentials, allowed=allowed)
        except OAuthToolkitError as error:
            return self._refuse(error)
        return _to_application(address)

    def _answer(self, scopes: str, credentials: dict[str, Any], *, allowed: bool) -> str:
        """Return the redirect address with a code; raises if the person denied."""
        address, _headers, _body, _status = self.create_authorization_response(
            request=self.request, scopes=scopes, credentials=credentials, allow=allowed
        )
        return str(address)

    def _refuse(self, error: OAuthToolkitError) -> HttpResponse:
        """Tell the application, unless its address cannot be trusted; then tell the person."""
        to_application, refusal = super(BaseAuthorizationView, self).error_response(error)
        if to_application:
            return _to_application(refusal["url"])
        kind = type(refusal["error"])
        context: dict[str, Any] = {
            "reason": _REASONS.get(kind, _("The request does not follow OAuth 2.0.")),
            "code": f"{refusal['error'].error}: {refusal['error'].description}",
        }
        if isinstance(error.oauthlib_error, errors.MismatchingRedirectURIError):
            context |= self._other_address()
        return render(self.request, "sandbox/authorization_error.html", context, status=400)

    def _other_address(self) -> dict[str, Any]:
        """Return what the error page says of a redirect address that is not registered."""
        asked = self.request.GET.get("redirect_uri", "")
        client = Client.objects.get(client_id=self.request.GET["client_id"])
        nearest, differing = differences(asked, client.redirect_uris.split())
        return {"client": client, "asked": asked, "nearest": nearest, "differing": differing}

    def _refuse_environment(self, client: Client) -> HttpResponse:
        """Refuse to mix live and test (spec: Credentials and environments)."""
        context = {
            "client": client,
            "person": self.request.user,
            "next": self.request.get_full_path(),
        }
        return render(self.request, "sandbox/environment_mismatch.html", context, status=403)


def _shared(asked: list[str], *, declined: list[str]) -> list[str]:
    """Return the scopes that are left of those that were asked for."""
    return [scope for scope in asked if scope not in DECLINABLE or scope not in declined]


def _to_application(address: str) -> HttpResponse:
    """Redirect to a registered address, whatever its scheme."""
    response = HttpResponse(status=302)
    response["Location"] = address
    return response
