"""Addresses of the control API."""

from django.urls import path

from django_identity.sandbox.control import connect, machinery, registrations, webhooks
from django_identity.sandbox.control.requests import control

urlpatterns = [
    path("health", control(GET=machinery.health)),
    path("clock", control(GET=machinery.show_clock, POST=machinery.move_clock)),
    path("keys", control(GET=machinery.show_keys)),
    path("keys/rotate", control(POST=machinery.rotate_keys)),
    path("keys/withdraw", control(POST=machinery.withdraw_key)),
    path("switches", control(GET=machinery.show_switches, POST=machinery.change_switches)),
    path(
        "faults",
        control(
            GET=machinery.list_faults, POST=machinery.order_fault, DELETE=machinery.cancel_faults
        ),
    ),
    path("faults/<int:fault_id>", control(DELETE=machinery.cancel_fault)),
    path("requests", control(GET=machinery.list_requests, DELETE=machinery.forget_requests)),
    path(
        "applications",
        control(GET=registrations.list_applications, POST=registrations.register_application),
    ),
    path("applications/<uuid:app_id>", control(POST=registrations.change_redirect_uris)),
    path(
        "applications/<uuid:app_id>/connect-policy",
        control(GET=connect.show_policy, POST=connect.change_policy),
    ),
    path("connect-codes", control(POST=connect.make_code)),
    path("emails", control(GET=connect.list_emails, DELETE=connect.forget_emails)),
    path("users", control(POST=registrations.create_user)),
    path("users/<path:user_id>/verify", control(POST=registrations.verify_user)),
    path("users/<path:user_id>/proof-of-address", control(POST=connect.prove_address)),
    path("users/<path:user_id>/connect-codes", control(GET=connect.list_codes)),
    path("users/<path:user_id>/notices", control(GET=connect.list_notices)),
    path(
        "users/<path:user_id>/claims/<str:claim_type>/revoke",
        control(POST=registrations.revoke_claim),
    ),
    path("users/<path:user_id>/claims/<str:claim_type>", control(POST=registrations.change_claim)),
    path(
        "users/<path:user_id>/consents/<str:client_id>/revoke",
        control(POST=registrations.revoke_consent),
    ),
    path(
        "users/<path:user_id>/consents/<str:client_id>/grant",
        control(POST=registrations.grant_consent),
    ),
    path(
        "users/<path:user_id>/claims/<str:claim_type>/issue",
        control(POST=registrations.issue_claim),
    ),
    path("users/<path:user_id>/invalidate", control(POST=registrations.invalidate_verification)),
    path("users/<path:user_id>/deletion", control(POST=registrations.request_deletion)),
    path("applications/<uuid:app_id>/webhook", control(POST=webhooks.set_webhook)),
    path("events", control(POST=webhooks.send_event)),
    path(
        "deliveries",
        control(GET=webhooks.list_deliveries, DELETE=webhooks.forget_deliveries),
    ),
    path("deliveries/hold", control(POST=webhooks.hold_deliveries)),
    path("deliveries/release", control(POST=webhooks.release_deliveries)),
    path("deliveries/<int:delivery_id>", control(GET=webhooks.show_delivery)),
    path("deliveries/<int:delivery_id>/send", control(POST=webhooks.send_delivery_again)),
    path("users/<path:user_id>", control(GET=registrations.show_user)),
]
