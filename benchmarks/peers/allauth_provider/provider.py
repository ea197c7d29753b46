from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount.providers.base import ProviderAccount
from allauth.socialaccount.providers.oauth2.provider import OAuth2Provider

from benchmarks.peers.allauth_provider.views import IdentityAdapter


class IdentityProvider(OAuth2Provider):
    id = "identity"
    name = "Identity"
    account_class = ProviderAccount
    oauth2_adapter_class = IdentityAdapter

    def extract_uid(self, data: dict[str, Any]) -> str:
        return data["id"]

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        return {name: data[name] for name in ("email", "first_name", "last_name")}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[EmailAddress]:
        return [
            EmailAddress(
                email=data["email"],
                verified=data["email_verified"],
                primary=True,
            ),
        ]


provider_classes = [IdentityProvider]
