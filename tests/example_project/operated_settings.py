"""The example project with a second application, which is live and has no records yet."""

from example_project.settings import *  # noqa: F403
from example_project.settings import DJANGO_IDENTITY

NEW = {
    "ENVIRONMENT": "live",
    "BASE_URL": "https://identity.example/api/v1",
    "AUTH_URL": "https://identity.example",
    "SERVICE_ACCOUNT_URL": "https://identity.example/account/",
}
DJANGO_IDENTITY = {**DJANGO_IDENTITY, "shop": {**DJANGO_IDENTITY, **NEW}}
# Served on loopback without TLS; only its admin is looked at.
SILENCED_SYSTEM_CHECKS = ["django_identity.E011"]
