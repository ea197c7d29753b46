from typing import Any

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.views import (
    OAuth2Adapter,
    OAuth2CallbackView,
    OAuth2LoginView,
)
from django.conf import settings
from django.http import HttpRequest


class IdentityAdapter(OAuth2Adapter):
    provider_id = "identity"

    @property
    def access_token_url(self) -> str:
        return f"{settings.SERVICE}/oauth2/token"

    @property
    def authorize_url(self) -> str:
        return f"{settings.SERVICE}/oauth2/auth"

    def complete_login(
        self,
        request: HttpRequest,
        app: Any,
        token: Any,
        **kwargs: Any,
    ) -> Any:
        with get_adapter().get_requests_session() as session:
            response = session.get(
                f"{settings.SERVICE}/api/v1/users/me/profile",
                headers={"Authorization": f"Bearer {token.token}"},
            )
        response.raise_for_status()
        provider = self.get_provider()
        return provider.sociallogin_from_response(request, response.json()["data"])


oauth2_login = OAuth2LoginView.adapter_view(IdentityAdapter)
oauth2_callback = OAuth2CallbackView.adapter_view(IdentityAdapter)
