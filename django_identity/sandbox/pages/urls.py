"""Addresses of the pages."""

from django.urls import path

from django_identity.sandbox.pages import account, connect, sign_in, verify

urlpatterns = [
    path("", account.account, name="account"),
    path("sign-in", sign_in.sign_in, name="sign_in"),
    path("continue", sign_in.continue_as, name="continue_as"),
    path("new", sign_in.make_person, name="make_person"),
    path("sign-out", sign_in.sign_out, name="sign_out"),
    path("switch", sign_in.switch_account, name="switch_account"),
    path("verify", verify.verify, name="verify"),
    path("verify/address", verify.prove_address, name="prove_address"),
    path("connect-codes/new", connect.make_code, name="make_connect_code"),
    path("connect-codes/<int:number>", connect.show_code, name="connect_code"),
    path("claims/<str:claim_type>/revoke", account.revoke_claim, name="revoke_claim"),
    path("claims/<str:claim_type>/issue", account.issue_claim, name="issue_claim"),
    path("delete", account.delete, name="delete_account"),
    path("consents/<str:client_id>/revoke", account.revoke_consent, name="revoke_consent"),
]
