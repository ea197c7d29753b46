from typing import Any

from social_core.backends.oauth import BaseOAuth2PKCE


class IdentityOAuth2(BaseOAuth2PKCE):
    """What a site writes to add a provider."""

    name = "identity"
    ID_KEY = "id"
    SCOPE_SEPARATOR = " "
    DEFAULT_SCOPE = ["profile:read"]
    ACCESS_TOKEN_METHOD = "POST"
    REDIRECT_STATE = False

    def authorization_url(self) -> str:
        return f"{self.setting('ORIGIN')}/oauth2/auth"

    def access_token_url(self) -> str:
        return f"{self.setting('ORIGIN')}/oauth2/token"

    def get_user_details(self, response: dict[str, Any]) -> dict[str, Any]:
        return {
            "username": response["id"],
            "email": response["email"],
            "first_name": response["first_name"],
            "last_name": response["last_name"],
        }

    def user_data(self, access_token: str, *args: Any, **kwargs: Any) -> Any:
        headers = {"Authorization": f"Bearer {access_token}"}
        address = f"{self.setting('ORIGIN')}/api/v1/users/me/profile"
        return self.get_json(address, headers=headers)["data"]
