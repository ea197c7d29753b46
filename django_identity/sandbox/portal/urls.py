"""Addresses of the developer portal."""

from django.urls import path

from django_identity.sandbox.portal import applications, deliveries, session

urlpatterns = [
    path("", applications.overview, name="portal"),
    path("sign-in", session.sign_in, name="portal_sign_in"),
    path("sign-out", session.sign_out, name="portal_sign_out"),
    path("applications/<uuid:app_id>", applications.application, name="portal_application"),
    path(
        "applications/<uuid:app_id>/test-users",
        applications.make_test_user,
        name="portal_test_users",
    ),
    path(
        "clients/<str:client_id>/redirect-uris",
        applications.change_redirect_uris,
        name="portal_redirect_uris",
    ),
    path(
        "clients/<str:client_id>/webhook",
        applications.change_webhook,
        name="portal_webhook",
    ),
    path(
        "clients/<str:client_id>/client-secret",
        applications.rotate_client_secret,
        name="portal_client_secret",
    ),
    path(
        "clients/<str:client_id>/webhook-secret",
        applications.rotate_webhook_secret,
        name="portal_webhook_secret",
    ),
    path("clients/<str:client_id>/deliveries", deliveries.listing, name="portal_deliveries"),
    path("deliveries/<int:delivery_id>", deliveries.delivery, name="portal_delivery"),
    path("deliveries/<int:delivery_id>/send", deliveries.send_again, name="portal_send_again"),
]
