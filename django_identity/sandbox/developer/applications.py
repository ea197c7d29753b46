"""Applications: registered, their secrets rotated, their addresses changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet
from oauth2_provider.generators import generate_client_id, generate_client_secret

from django_identity.sandbox import local_site
from django_identity.sandbox.documents import keys
from django_identity.sandbox.events import courier
from django_identity.sandbox.events.addresses import allowed_address
from django_identity.sandbox.models import Application, Client, Environment


@dataclass(frozen=True, slots=True)
class NewClient:
    """A created credential set with the secret that is shown this once."""

    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewApplication:
    """A registered application with both of its credential sets."""

    application: Application
    test: NewClient
    live: NewClient


@transaction.atomic
def register_application(
    name: str,
    redirect_uris: Sequence[str],
    *,
    client_secrets: Mapping[Environment, str] | None = None,
) -> NewApplication:
    """Register an application and issue its test and live credential sets.

    A secret that ``client_secrets`` does not give, or gives empty, is made up.
    """
    chosen = client_secrets or {}
    application = Application.objects.create(name=name)
    test, live = (
        _issue_client(
            application, environment, redirect_uris, client_secret=chosen.get(environment, "")
        )
        for environment in (Environment.TEST, Environment.LIVE)
    )
    return NewApplication(application, test=test, live=live)


@transaction.atomic
def register_local_site(sites: Sequence[str]) -> None:
    """Register the application that ``local_site.sandbox_application`` describes.

    Args:
        sites: where the site runs; if none is named, the usual addresses, and one that is
            registered already stays as it is.
    """
    known = Client.objects.filter(client_id=local_site.CLIENT_ID)
    if known.exists() and not sites:
        return
    if not known.exists():
        application = Application.objects.create(name=local_site.NAME)
        _issue_client(
            application,
            Environment.TEST,
            (),
            client_id=local_site.CLIENT_ID,
            client_secret=local_site.CLIENT_SECRET,
        )
        _issue_client(application, Environment.LIVE, ())
    addresses = [site.rstrip("/") for site in sites or local_site.SITES]
    change_redirect_uris(known, [each + local_site.CALLBACK_PATH for each in addresses])
    webhook = addresses[0] + local_site.WEBHOOK_PATH
    register_webhook(known.get(), webhook, is_local=True, secret=local_site.WEBHOOK_SECRET)


def rotate_client_secret(client: Client) -> NewClient:
    """Give ``client`` a new secret, which is shown this once; the old one is void at once."""
    client_secret = generate_client_secret()
    client.client_secret = client_secret
    client.save(update_fields=["client_secret"])
    return NewClient(client.client_id, client_secret)


def rotate_webhook_secret(client: Client) -> str:
    """Sign what ``client`` is sent from now on with a new secret, and return it."""
    client.webhook_secret = courier.new_secret()
    client.save(update_fields=["webhook_secret"])
    return client.webhook_secret


def change_redirect_uris(clients: QuerySet[Client], redirect_uris: Sequence[str]) -> int:
    """Register other redirect addresses; return for how many credential sets."""
    return clients.update(redirect_uris=" ".join(redirect_uris))


def register_webhook(client: Client, url: str, *, is_local: bool, secret: str = "") -> None:
    """Send the events for ``client`` to ``url`` from now on; an empty address ends it.

    Args:
        client: the credential set.
        url: an http or https address.
        is_local: whether this machine chose it, and it may be a private one.
        secret: what signs them; without it the present one stays, and the first is made up.

    Raises:
        InvalidAddress: nothing was changed.
    """
    client.webhook_url = url and allowed_address(url, is_local=is_local)
    client.webhook_is_local = is_local
    client.webhook_secret = secret or client.webhook_secret or courier.new_secret()
    client.save(update_fields=["webhook_url", "webhook_is_local", "webhook_secret"])


def approve_as_trusted(application: Application, document_key: object) -> None:
    """Approve ``application`` for the trusted tier. Documents are encrypted to ``document_key``.

    It replaces a key from before.

    Raises:
        InvalidDocumentKey: nothing was changed.
    """
    application.document_key = keys.public_key(document_key)
    application.save(update_fields=["document_key"])


def end_trusted_tier(application: Application) -> None:
    """Take the approval back. Tokens keep their scopes, but no document is served any more."""
    application.document_key = None
    application.save(update_fields=["document_key"])


def _issue_client(
    application: Application,
    environment: Environment,
    redirect_uris: Sequence[str],
    *,
    client_id: str = "",
    client_secret: str = "",
) -> NewClient:
    """Create the credential set of one environment; the secret is stored hashed."""
    client_secret = client_secret or generate_client_secret()
    client = Client.objects.create(
        client_id=client_id or generate_client_id(),
        registered=application,
        environment=environment,
        name=application.name,
        redirect_uris=" ".join(redirect_uris),
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        client_secret=client_secret,
    )
    return NewClient(client.client_id, client_secret)
