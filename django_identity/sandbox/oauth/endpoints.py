"""GET /oauth2/auth, the consent screen, and POST /oauth2/token."""

import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.decorators import method_decorator
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.views import TokenView
from oauth2_provider.views.base import BaseAuthorizationView
from oauthlib.oauth2.rfc6749.errors import MismatchingRedirectURIError

from django_identity.sandbox import clients, consents, envelope, request_log, switches
from django_identity.sandbox.models import Client
from django_identity.sandbox.oauth import rules
from django_identity.sandbox.people.pages import signed_in_user, was_skipped

# A person may approve an application and keep their documents from it.
DECLINABLE = frozenset({"documents:metadata", "documents:read"})


class AuthorizationPage(BaseAuthorizationView):
    """Asks the person, each time, whether an application may have what it asks for.

    The request is read from the address on GET and on POST alike, so nothing in the form can
    change it.
    """

    http_method_names = ["get", "head", "post"]

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
        user = signed_in_user(request)
        here = request.get_full_path()
        if user.environment != client.environment:
            return self._refuse_environment(client)

        if not user.is_verified and not was_skipped(request, here):
            return redirect(f"{resolve_url('verify')}?{urlencode({'next': here})}")
        request_log.note(request, user, client)
        context = {
            "client": client,
            "person": user,
            "scopes": consents.described(scopes),
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
            declined = DECLINABLE.intersection(request.POST.getlist("decline"))
            scopes = [scope for scope in asked if scope not in declined]
            allowed = "allow" in request.POST and bool(scopes)
            if user.environment != client.environment:
                return self._refuse_environment(client)
            request_log.note(request, user, client)
            if allowed:
                consents.grant(user, client, scopes)
            address, *_rest = self.create_authorization_response(
                request=request,
                scopes=" ".join(scopes),
                credentials=credentials,
                allow=allowed,
            )
        except OAuthToolkitError as error:
            return self._refuse(error)
        return _to_application(str(address))

    def _refuse(self, error: OAuthToolkitError) -> HttpResponse:
        """Tell the application, unless its address cannot be trusted; then tell the person."""
        to_application, refusal = super(BaseAuthorizationView, self).error_response(
            error,
        )
        if to_application:
            return _to_application(refusal["url"])
        context: dict[str, Any] = {"error": refusal["error"]}
        if isinstance(refusal["error"], MismatchingRedirectURIError):
            context["client"] = Client.objects.get(
                client_id=self.request.GET["client_id"],
            )
        return render(
            self.request,
            "sandbox/authorization_error.html",
            context,
            status=400,
        )

    def _refuse_environment(self, client: Client) -> HttpResponse:
        """Refuse to mix live and test (spec: Credentials and environments)."""
        context = {"client": client, "next": self.request.get_full_path()}
        return render(
            self.request,
            "sandbox/environment_mismatch.html",
            context,
            status=403,
        )


class TokenEndpoint(TokenView):
    """Exchanges codes and refresh tokens.

    One transaction per request makes codes and refresh tokens single-use under parallel requests
    as well: the second request sees what the first one did.
    """

    http_method_names = ["post"]

    @method_decorator(transaction.atomic)
    def post(
        self,
        request: HttpRequest,
        *args: object,
        **kwargs: object,
    ) -> HttpResponse:
        """Answer a token request; name a mix of environments as what it is."""
        if request.GET or request.content_type != "application/x-www-form-urlencoded":
            message = "Send the parameters in a form-encoded body, and nowhere else."
            refusal = {"error": "invalid_request", "error_description": message}
            return _in_form(JsonResponse(refusal, status=400))

        grant = rules.presented(request)
        client = Client.objects.filter(
            client_id=request.POST.get("client_id", ""),
        ).first()
        if grant is not None:
            request_log.note(request, grant.user, grant.application)

        response: HttpResponse = self.authorization_flow_token_response(request)
        response["Content-Type"] = "application/json"
        if response.status_code == 401:
            response["WWW-Authenticate"] = clients.CHALLENGE
        if response.status_code == 400 and grant and client:
            is_mixed = grant.application.environment != client.environment
            if is_mixed and json.loads(response.content)["error"] == "invalid_grant":
                return envelope.environment_mismatch().answer
        return _in_form(response)

    def http_method_not_allowed(self, *args: object, **kwargs: object) -> HttpResponse:
        """Refuse any method but POST, as JSON."""
        return envelope.method_not_allowed("POST")


def _in_form(response: HttpResponse) -> HttpResponse:
    """Return an error of the token endpoint in the form that the switch chooses.

    The specification shows none: OAuth's (RFC 6749, section 5.2), or the service's envelope.
    """
    if response.status_code < 400 or switches.current().token_errors == "oauth":
        return response
    refusal = json.loads(response.content)
    return envelope.error(
        response.status_code,
        refusal["error"].upper(),
        refusal.get("error_description") or _in_words(refusal["error"]),
        challenge=response.get("WWW-Authenticate", ""),
    )


def _in_words(code: str) -> str:
    """Return the sentence of an error that comes without one: "Invalid grant."."""
    return f"{code.replace('_', ' ').capitalize()}."


def _to_application(address: str) -> HttpResponse:
    """Redirect to a registered address, whatever its scheme."""
    response = HttpResponse(status=302)
    response["Location"] = address
    return response
