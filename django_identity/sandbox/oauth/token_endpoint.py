"""POST /oauth2/token."""

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from oauth2_provider.views import TokenView

from django_identity.sandbox.oauth import clients, rules
from django_identity.sandbox.server import envelope


class TokenEndpoint(TokenView):
    """Exchanges codes and refresh tokens.

    One transaction per request makes codes and refresh tokens single-use under parallel requests
    as well: the second request sees what the first one did.
    """

    http_method_names = ["post"]

    @method_decorator(transaction.atomic)
    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Answer a token request; name a mix of environments as what it is."""
        response: HttpResponse = self.authorization_flow_token_response(request)
        if response.status_code == 401:
            response["WWW-Authenticate"] = clients.CHALLENGE
        refused = (
            response.status_code == 400 and json.loads(response.content)["error"] == "invalid_grant"
        )
        if refused and rules.mixes_environments(request):
            return envelope.environment_mismatch()
        return response

    def http_method_not_allowed(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponse:
        """Refuse any method but POST, as JSON."""
        return envelope.method_not_allowed("POST")
