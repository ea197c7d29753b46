"""Applications: registered, their secrets rotated, their addresses changed."""

from collections.abc import Mapping, Sequence

from django.db import transaction
from oauth2_provider.generators import generate_client_id, generate_client_secret

from django_identity import sandbox
from django_identity.sandbox import documents, envelope
from django_identity.sandbox.events import sender
from django_identity.sandbox.models import Application, Client, Environment

#: A client id with its new secret, which is shown this once.
Issued = tuple[str, str]


@transaction.atomic
def register(
    name: str,
    redirect_uris: Sequence[str],
    secrets: Mapping[str, str] | None = None,
) -> tuple[Application, dict[str, Issued]]:
    """Register an application and issue its credential sets, one for each environment.

    A secret that ``secrets`` does not give, or gives empty, is made up.
    """
    application = Application.objects.create(name=name)
    issued: dict[str, Issued] = {}
    for mode in Environment.values[::-1]:
        secret = (secrets or {}).get(mode)
        issued[mode] = _issue(
            application,
            mode,
            redirect_uris,
            generate_client_id(),
            secret,
        )
    return application, issued


@transaction.atomic
def register_local_site(sites: Sequence[str]) -> None:
    """Register the application that ``sandbox_application`` describes.

    Args:
        sites: where the site runs; if none is named, the usual addresses, and one that is
            registered already stays as it is.
    """
    known = Client.objects.filter(client_id=sandbox.CLIENT_ID)
    if known.exists() and not sites:
        return
    if not known.exists():
        application = Application.objects.create(name="Local site")
        _issue(
            application,
            Environment.TEST,
            (),
            sandbox.CLIENT_ID,
            sandbox.CLIENT_SECRET,
        )
        _issue(application, Environment.LIVE, (), generate_client_id())

    addresses = [site.rstrip("/") for site in sites or sandbox.SITES]
    known.update(
        redirect_uris=" ".join(
            address + sandbox.CALLBACK_PATH for address in addresses
        ),
    )

    webhook, *copies = [address + sandbox.WEBHOOK_PATH for address in addresses]
    # The usual addresses are one site, which needs each event once.
    if not sites:
        copies = []
    register_webhook(known.get(), webhook, secret=sandbox.WEBHOOK_SECRET, copies=copies)


def rotate_client_secret(client: Client) -> Issued:
    """Give ``client`` a new secret, which is shown this once; the old one is void at once."""
    client_secret = generate_client_secret()
    client.client_secret = client_secret
    client.save(update_fields=["client_secret"])
    return client.client_id, client_secret


def rotate_webhook_secret(client: Client) -> str:
    """Sign what ``client`` is sent from now on with a new secret, and return it."""
    client.webhook_secret = sender.new_secret()
    client.save(update_fields=["webhook_secret"])
    return client.webhook_secret


def register_webhook(
    client: Client,
    url: str,
    *,
    secret: str = "",
    copies: Sequence[str] = (),
) -> None:
    """Send the events for ``client`` to ``url`` from now on; an empty address ends it.

    Args:
        client: the credential set.
        url: an http or https address.
        secret: what signs them; without it the present one stays, and the first is made up.
        copies: further addresses that get every event, for a machine with several sites.

    Raises:
        Invalid: nothing was changed.
    """
    client.webhook_url = url and envelope.http_address("url", url)
    client.webhook_secret = (
        secret or client.webhook_secret or (url and sender.new_secret())
    )
    client.webhook_copies = "\n".join(copies)
    client.save(update_fields=["webhook_url", "webhook_secret", "webhook_copies"])


def change_document_key(application: Application, key: object) -> None:
    """Approve ``application`` for the trusted tier with ``key``; None takes the approval back.

    Tokens keep their scopes without it, but no document is served any more.

    Raises:
        Invalid: nothing was changed.
    """
    if key is not None:
        key = documents.public_key(key)
    application.document_key = key
    application.save(update_fields=["document_key"])


def _issue(
    application: Application,
    mode: str,
    redirect_uris: Sequence[str],
    client_id: str,
    client_secret: str | None = None,
) -> Issued:
    """Create the credential set of one environment; the secret is stored hashed."""
    secret = client_secret or generate_client_secret()
    client = Client.objects.create(
        client_id=client_id,
        registered=application,
        environment=mode,
        name=application.name,
        redirect_uris=" ".join(redirect_uris),
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        client_secret=secret,
    )
    return client.client_id, secret
