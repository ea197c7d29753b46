"""Addresses of the pages."""

from django.urls import path

from django_identity.sandbox.pages import account, sign_in, verify

urlpatterns = [
    path("", account.account, name="account"),
    path("sign-in", sign_in.sign_in, name="sign_in"),
    path("sign-out", sign_in.sign_out, name="sign_out"),
    path("switch", sign_in.switch_account, name="switch_account"),
    path("verify", verify.verify, name="verify"),
    path("claims/<str:claim_type>/revoke", account.revoke_claim, name="revoke_claim"),
    path("consents/<str:client_id>/revoke", account.revoke_consent, name="revoke_consent"),
]
