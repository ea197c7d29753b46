"""Ask the service for a new client secret."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.exceptions import ServiceError
from django_identity.management.command import PORTAL_TOKEN, PortalCommand
from django_identity.service import ServiceClient


class Command(PortalCommand):
    help = (
        "Ask the service for a new client secret for the application's environment, and print it "
        "once on standard output. The current secret stops working at once. The developer "
        f"portal's session token is read from {PORTAL_TOKEN}, or asked for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    @sensitive_variables()
    def handle(self, *, app_id: str, yes: bool, **_options: Any) -> None:
        registered = conf.application()
        environment = registered.environment
        token = self.portal_token()
        question = f"Type {environment} to void its secret now: "
        if not yes and input(question) != environment:
            raise CommandError("Nothing was done.")
        try:
            rotated = ServiceClient(registered).rotate_secret(
                app_id, mode=environment, portal_token=token
            )
        except ServiceError as error:
            advice = "If sign-ins fail now, the secret has changed: rotate again."
            raise CommandError(f"{error.code}: {error}. {advice}") from None

        is_of_another = rotated.client_id != registered.client_id
        if is_of_another or rotated.mode != environment:
            raise CommandError(
                f"The answer has the secret of {rotated.client_id} ({rotated.mode}), not of "
                f"CLIENT_ID, so it is not printed. The old secret of "
                f"{rotated.client_id} may be void: rotate it in the portal."
            )
        self.stderr.write("The new CLIENT_SECRET; it is not shown again:")
        self.stdout.write(rotated.client_secret.reveal())
