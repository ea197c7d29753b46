"""Addresses of the control API."""

from django.urls import path

from django_identity.sandbox.control import machinery, registrations
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
    path("users", control(POST=registrations.create_user)),
    path("users/<path:user_id>/verify", control(POST=registrations.verify_user)),
    path(
        "users/<path:user_id>/claims/<str:claim_type>/revoke",
        control(POST=registrations.revoke_claim),
    ),
    path("users/<path:user_id>/claims/<str:claim_type>", control(POST=registrations.change_claim)),
    path(
        "users/<path:user_id>/consents/<str:client_id>/revoke",
        control(POST=registrations.revoke_consent),
    ),
    path("users/<path:user_id>", control(GET=registrations.show_user)),
]
