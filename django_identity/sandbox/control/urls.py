"""Addresses of the control API."""

from django.urls import path

from django_identity.sandbox.control import (
    applications,
    authorizations,
    connect,
    events,
    instruments,
    keys,
    users,
)
from django_identity.sandbox.control.access import control

USER, APPLICATION = "users/<path:user_id>", "applications/<uuid:app_id>"

urlpatterns = [
    path("health", control(GET=instruments.health)),
    path("clock", control(GET=instruments.show_clock, POST=instruments.move_clock)),
    path("keys", control(GET=keys.show_keys)),
    path("keys/rotate", control(POST=keys.rotate_keys)),
    path("keys/withdraw", control(POST=keys.withdraw_key)),
    path("switches", control(GET=instruments.show_switches, POST=instruments.change_switches)),
    path(
        "faults",
        control(
            GET=instruments.list_faults,
            POST=instruments.order_fault,
            DELETE=instruments.cancel_faults,
        ),
    ),
    path("faults/<int:fault_id>", control(DELETE=instruments.cancel_fault)),
    path("requests", control(GET=instruments.list_requests, DELETE=instruments.forget_requests)),
    path(
        "applications",
        control(GET=applications.list_applications, POST=applications.register_application),
    ),
    path(APPLICATION, control(POST=applications.change_redirect_uris)),
    path(
        f"{APPLICATION}/connect-policy",
        control(GET=applications.show_policy, POST=applications.change_policy),
    ),
    path(
        f"{APPLICATION}/trusted-tier",
        control(
            GET=applications.show_tier,
            POST=applications.approve_as_trusted,
            DELETE=applications.end_trusted_tier,
        ),
    ),
    path("authorizations", control(POST=authorizations.decide)),
    path("connect-codes", control(POST=connect.make_code)),
    path("emails", control(GET=connect.list_emails, DELETE=connect.forget_emails)),
    path("users", control(POST=users.create_user)),
    path(f"{USER}/verify", control(POST=users.verify_user)),
    path(f"{USER}/proof-of-address", control(POST=connect.prove_address)),
    path(f"{USER}/connect-codes", control(GET=connect.list_codes)),
    path(f"{USER}/notices", control(GET=connect.list_notices)),
    path(f"{USER}/claims/<str:claim_type>/revoke", control(POST=users.revoke_claim)),
    path(f"{USER}/claims/<str:claim_type>", control(POST=users.change_claim)),
    path(f"{USER}/consents/<str:client_id>/revoke", control(POST=users.revoke_consent)),
    path(f"{USER}/consents/<str:client_id>/grant", control(POST=users.grant_consent)),
    path(f"{USER}/claims/<str:claim_type>/issue", control(POST=users.issue_claim)),
    path(f"{USER}/invalidate", control(POST=users.invalidate_verification)),
    path(f"{USER}/deletion", control(POST=users.request_deletion)),
    path(f"{APPLICATION}/webhook", control(POST=applications.set_webhook)),
    path("events", control(POST=events.send_event)),
    path("deliveries", control(GET=events.list_deliveries, DELETE=events.forget_deliveries)),
    path("deliveries/hold", control(POST=events.hold_deliveries)),
    path("deliveries/release", control(POST=events.release_deliveries)),
    path("deliveries/<int:delivery_id>", control(GET=events.show_delivery)),
    path("deliveries/<int:delivery_id>/send", control(POST=events.send_delivery_again)),
    path(USER, control(GET=users.show_user)),
]
