"""Every address of the sandbox; the names are what faults and the request log call endpoints."""

from django.contrib.staticfiles.views import serve as serve_static
from django.urls import include, path, re_path
from django.views.i18n import set_language

from django_identity.sandbox.connect.endpoint import connect_request
from django_identity.sandbox.developer.endpoints import rotate_secret, test_users
from django_identity.sandbox.documents import endpoints as documents
from django_identity.sandbox.keys.endpoint import jwks
from django_identity.sandbox.oauth.token_endpoint import TokenEndpoint
from django_identity.sandbox.pages.consent import AuthorizationPage
from django_identity.sandbox.server import envelope, own_process
from django_identity.sandbox.users import endpoints
from django_identity.sandbox.users.claims_check import verify_claims

own_process.keep_out()

handler404 = "django_identity.sandbox.pages.errors.not_found"
handler500 = "django_identity.sandbox.pages.errors.server_error"

urlpatterns = [
    path("oauth2/auth", AuthorizationPage.as_view(), name="authorize"),
    path("oauth2/token", TokenEndpoint.as_view(), name="token"),
    path("api/v1/users/<path:user_id>/profile", endpoints.profile, name="profile"),
    path("api/v1/users/<path:user_id>/kyc", endpoints.kyc, name="kyc"),
    path("api/v1/users/<path:user_id>/claims", endpoints.claims_list, name="claims"),
    path(
        "api/v1/users/<path:user_id>/documents/metadata",
        documents.metadata,
        name="document_metadata",
    ),
    path("api/v1/users/<path:user_id>/documents", documents.documents, name="documents"),
    path("api/v1/claims/verify", verify_claims, name="verify_claims"),
    path("api/v1/connect/request", connect_request, name="connect"),
    path("api/v1/developer/apps/<str:app_id>/rotate-secret", rotate_secret, name="rotate_secret"),
    path("api/v1/developer/test-users", test_users, name="test_users"),
    path(".well-known/jwks.json", jwks, name="jwks"),
    # A line break in the path, too: the dot alone matches none.
    re_path(r"^api/v1/(?P<path>(?s:.*))$", envelope.unknown_path),
    path("language/", set_language, name="set_language"),
    path("account/", include("django_identity.sandbox.pages.urls")),
    path("portal/", include("django_identity.sandbox.developer.urls")),
    path("sandbox/", include("django_identity.sandbox.control.urls")),
    path("static/<path:path>", serve_static, {"insecure": True}),
    path("", include("django_identity.sandbox.console.urls")),
]
