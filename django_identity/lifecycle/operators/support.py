"""An event as a script that sends it again: for support, without a secret in it."""

from __future__ import annotations

import hashlib
import hmac
import json
import shlex

from django_identity import conf
from django_identity.models import Environment, WebhookEvent

SIGNED = "signature={signature}"
UNSIGNED = (
    ': "${WEBHOOK_SECRET:?set it to the receiver\'s webhook secret}"\n'
    'signature=$(printf \'%s\' "$body" | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -hex '
    "| sed 's/^.* //')"
)
SCRIPT = """\
#!/bin/sh
# One event, as it was stored, sent again with curl.
#   sh {name} https://site.example/identity/webhook/
# {note}
set -eu
address=${{1:?the address of the webhook}}
body={body}
{signature}
printf '%s' "$body" | curl --fail-with-body --silent --show-error \\
  --header 'Content-Type: application/json' \\
  --header "x-webhook-signature: $signature" \\
  --data-binary @- -- "$address"
"""


def script_of(event: WebhookEvent, *, name: str) -> str:
    """The event's body and a call of curl.

    It is signed only for an application in the test environment; otherwise whoever runs it brings
    the secret of the receiver.
    """
    body = json.dumps(event.payload, ensure_ascii=True, separators=(",", ":"))
    secret = _test_secret(event.application)
    if secret is None:
        note, signature = "Not signed: the live secret is never used for this.", UNSIGNED
    else:
        made = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
        note, signature = "Signed for the test environment.", SIGNED.format(signature=made)
    return SCRIPT.format(name=name, note=note, body=shlex.quote(body), signature=signature)


def _test_secret(alias: str) -> str | None:
    if alias not in conf.aliases():
        return None
    application = conf.application(alias)
    if application.environment != Environment.TEST or not application.webhook_secrets:
        return None
    return application.webhook_secrets[0]
