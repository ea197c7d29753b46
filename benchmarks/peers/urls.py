"""The addresses of each site, and the page after the sign-in, the same in all of them."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import include, path, reverse

from benchmarks.peers.sites import CLIENT_ID, CLIENT_SECRET, PEER, SERVICE


def who(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.user.pk} {request.user}")


urlpatterns: list[Any] = [path("who/", who, name="who")]

if PEER.startswith("ours"):
    urlpatterns += [path("identity/", include("django_identity.urls"))]
elif PEER.startswith("allauth"):
    urlpatterns += [path("accounts/", include("allauth.urls"))]
elif PEER == "social":
    urlpatterns += [path("", include("social_django.urls", namespace="social"))]
elif PEER == "oidc":
    urlpatterns += [path("oidc/", include("mozilla_django_oidc.urls"))]
elif PEER == "dj_stripe":
    urlpatterns += [path("stripe/", include("djstripe.urls", namespace="djstripe"))]
elif PEER == "authlib":
    from authlib.integrations.django_client import OAuth

    oauth = OAuth()
    oauth.register(
        name="identity",
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        access_token_url=f"{SERVICE}/oauth2/token",
        authorize_url=f"{SERVICE}/oauth2/auth",
        api_base_url=f"{SERVICE}/api/v1/",
        client_kwargs={"scope": "profile:read", "code_challenge_method": "S256"},
    )

    def begin(request: HttpRequest) -> HttpResponse:
        address = request.build_absolute_uri(reverse("callback"))
        return oauth.identity.authorize_redirect(request, address)

    def callback(request: HttpRequest) -> HttpResponse:
        token = oauth.identity.authorize_access_token(request)
        response = oauth.identity.get("users/me/profile", token=token)
        response.raise_for_status()
        person = response.json()["data"]
        # The smallest that a site can do: the service's id is the user name.
        user, _ = get_user_model().objects.get_or_create(
            username=person["id"],
            defaults={"email": person["email"]},
        )
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect(settings.LOGIN_REDIRECT_URL)

    urlpatterns += [path("login/", begin), path("callback/", callback, name="callback")]
