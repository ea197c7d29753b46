"""Addresses of the developer portal."""

from django.urls import path

from django_identity.sandbox.developer import application_pages, delivery_pages, session

urlpatterns = [
    path("", application_pages.overview, name="portal"),
    path("sign-in", session.sign_in, name="portal_sign_in"),
    path("sign-out", session.sign_out, name="portal_sign_out"),
    path("applications/<uuid:app_id>", application_pages.application, name="portal_application"),
    path(
        "applications/<uuid:app_id>/test-users",
        application_pages.make_test_user,
        name="portal_test_users",
    ),
    path(
        "applications/<uuid:app_id>/trusted-tier", application_pages.change_tier, name="portal_tier"
    ),
    path(
        "clients/<str:client_id>/redirect-uris",
        application_pages.change_redirect_uris,
        name="portal_redirect_uris",
    ),
    path(
        "clients/<str:client_id>/webhook", application_pages.change_webhook, name="portal_webhook"
    ),
    path(
        "clients/<str:client_id>/client-secret",
        application_pages.rotate_client_secret,
        name="portal_client_secret",
    ),
    path(
        "clients/<str:client_id>/webhook-secret",
        application_pages.rotate_webhook_secret,
        name="portal_webhook_secret",
    ),
    path("clients/<str:client_id>/deliveries", delivery_pages.listing, name="portal_deliveries"),
    path("deliveries/<int:delivery_id>", delivery_pages.delivery, name="portal_delivery"),
    path("deliveries/<int:delivery_id>/send", delivery_pages.send_again, name="portal_send_again"),
]
