"""Ask the service for a new client secret."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.exceptions import ServiceError
from django_identity.management.command import (
    PORTAL_TOKEN,
    IdentityCommand,
    portal_token,
)
from django_identity.service import ServiceClient


class Command(IdentityCommand):
    help = (
        "Ask the service for a new client secret for the application's environment, and print it "
        "once on standard output. The current secret stops working at once. The developer "
        f"portal's session token is read from {PORTAL_TOKEN}, or asked for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "app_id", help="The application's id in the developer portal."
        )
        parser.add_argument(
            "--application", default=conf.DEFAULT_ALIAS, help="An alias."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    @sensitive_variables()
    def handle(
        self, *, app_id: str, application: str, yes: bool, **_options: Any
    ) -> None:
        registered = conf.application(application)
        token = portal_token()
        if not yes and input(
            f"Type {registered.environment} to void its secret now: "
        ) != (registered.environment):
            raise CommandError("Nothing was done.")
        try:
            rotated = ServiceClient(registered).rotate_secret(
                app_id, mode=registered.environment, portal_token=token
            )
        except ServiceError as error:
            advice = "If sign-ins fail now, the secret has changed: rotate again."
            raise CommandError(f"{error.code}: {error}. {advice}") from None
        if (rotated.mode, rotated.client_id) != (
            registered.environment,
            registered.client_id,
        ):
            raise CommandError(
                f"The answer has the secret of {rotated.client_id} ({rotated.mode}), not of the "
                f"application {registered.alias!r}, so it is not printed. The old secret of "
                f"{rotated.client_id} may be void: rotate it in the portal."
            )
        self.stderr.write("The new CLIENT_SECRET; it is not shown again:")
        self.stdout.write(rotated.client_secret.reveal())
