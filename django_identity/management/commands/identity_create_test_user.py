"""Ask the service for a sandbox user."""

from typing import Any

from django.core.management.base import CommandError
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.management.command import PORTAL_TOKEN, PortalCommand
from django_identity.models import Environment
from django_identity.service import ServiceClient


class Command(PortalCommand):
    help = (
        "Ask the service for a sandbox user, and print its e-mail address and password once. Only "
        "for applications of the test environment. The developer portal's session token is read "
        f"from {PORTAL_TOKEN}, or asked for."
    )

    @sensitive_variables()
    def handle(self, *, app_id: str, **_options: Any) -> None:
        registered = conf.application()
        if registered.environment != Environment.TEST:
            raise CommandError("The site is live. Test users are not.")
        user = ServiceClient(registered).create_test_user(
            app_id, portal_token=self.portal_token()
        )
        self.stdout.write(f"user id   {user.user_id}")
        self.stdout.write(f"e-mail    {user.email}")
        self.stdout.write(f"password  {user.password.reveal()}")
        self.stderr.write("The password is not shown again.")
