from allauth.socialaccount.providers.oauth2.urls import default_urlpatterns

from benchmarks.peers.allauth_provider.provider import IdentityProvider

urlpatterns = default_urlpatterns(IdentityProvider)
