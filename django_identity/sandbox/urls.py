"""Every address of the sandbox; the names are what faults and the request log call endpoints."""

from django.contrib.staticfiles.views import serve as serve_static
from django.urls import include, path, re_path

from django_identity.sandbox import apps, connect, control, documents, envelope, keys
from django_identity.sandbox.console import pages as console
from django_identity.sandbox.credentials import verify_claims
from django_identity.sandbox.developer.portal import portal, rotate_secret, test_users
from django_identity.sandbox.oauth.endpoints import AuthorizationPage, TokenEndpoint
from django_identity.sandbox.people import endpoints, pages

apps.keep_out()


_USER = "users/<path:user_id>"
api = [
    path(f"{_USER}/profile", endpoints.profile, name="profile"),
    path(f"{_USER}/kyc", endpoints.kyc, name="kyc"),
    path(f"{_USER}/claims", endpoints.claims_list, name="claims"),
    path(f"{_USER}/documents/metadata", documents.metadata, name="document_metadata"),
    path(f"{_USER}/documents", documents.documents, name="documents"),
    path("claims/verify", verify_claims, name="verify_claims"),
    path("connect/request", connect.connect_request, name="connect"),
    path(
        "developer/apps/<str:app_id>/rotate-secret",
        rotate_secret,
        name="rotate_secret",
    ),
    path("developer/test-users", test_users, name="test_users"),
    # A line break in the path, too: the dot alone matches none.
    re_path(r"^(?P<path>(?s:.*))$", envelope.unknown_path),
]
account = [
    path("", pages.account, name="account"),
    path("sign-in", pages.sign_in, name="sign_in"),
    path("continue", pages.continue_as, name="continue_as"),
    path("sign-out", pages.sign_out, name="sign_out"),
    path("verify", pages.verify, name="verify"),
    path("verify/address", pages.prove_address, name="prove_address"),
    path("connect-codes/new", connect.new_code, name="make_connect_code"),
    path("connect-codes/<int:number>", connect.show_code, name="connect_code"),
    path("claims/<str:claim_type>/revoke", pages.revoke_claim, name="revoke_claim"),
    path("claims/<str:claim_type>/issue", pages.issue_claim, name="issue_claim"),
    path("delete", pages.delete, name="delete_account"),
    path(
        "consents/<str:client_id>/revoke",
        pages.revoke_consent,
        name="revoke_consent",
    ),
]


urlpatterns = [
    path("oauth2/auth", AuthorizationPage.as_view(), name="authorize"),
    path("oauth2/token", TokenEndpoint.as_view(), name="token"),
    path("api/v1/", include(api)),
    path(".well-known/jwks.json", keys.jwks, name="jwks"),
    path("account/", include(account)),
    path("portal/", portal, name="portal"),
    path("sandbox/", include(control.urlpatterns())),
    re_path(r"^sandbox/(?P<path>(?s:.*))$", envelope.unknown_path),
    path("static/<path:path>", serve_static, {"insecure": True}),
    path("favicon.ico", serve_static, {"path": "sandbox/mark.svg", "insecure": True}),
    path("", include(console.urlpatterns)),
]
