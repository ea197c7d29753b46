"""Ask the service for a sandbox user."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.management.command import (
    PORTAL_TOKEN,
    IdentityCommand,
    portal_token,
)
from django_identity.models import Environment
from django_identity.service import ServiceClient


class Command(IdentityCommand):
    help = (
        "Ask the service for a sandbox user, and print its e-mail address and password once. Only "
        "for applications of the test environment. The developer portal's session token is read "
        f"from {PORTAL_TOKEN}, or asked for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "app_id", help="The application's id in the developer portal."
        )
        parser.add_argument(
            "--application", default=conf.DEFAULT_ALIAS, help="An alias."
        )

    @sensitive_variables()
    def handle(self, *, app_id: str, application: str, **_options: Any) -> None:
        registered = conf.application(application)
        if registered.environment != Environment.TEST:
            raise CommandError(
                f"The application {registered.alias!r} is live. Test users are not."
            )
        made = ServiceClient(registered).create_test_user(
            app_id, portal_token=portal_token()
        )
        self.stdout.write(f"user id   {made.user_id}")
        self.stdout.write(f"e-mail    {made.email}")
        self.stdout.write(f"password  {made.password.reveal()}")
        self.stderr.write("The password is not shown again.")
