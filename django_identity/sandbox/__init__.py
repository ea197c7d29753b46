"""The identity verification service, played locally: a Django project of its own.

``python -m django_identity.sandbox`` serves it; nothing else of ``django_identity`` imports it and
it imports nothing else of ``django_identity``, so it is a second, independent reading of the
service's specification.

===============  ==============================================================================
folder           part of the specification
===============  ==============================================================================
``models``       Resources and their fields
``oauth``        Authentication: OAuth 2.0 with PKCE; Endpoints: POST /oauth2/token
``users``        Endpoints: GET /users/:userId/…; Limits: sandbox rules, test numbers
``claims``       Resources: Claim, Credential; States: Claim
``keys``         Endpoints: GET /.well-known/jwks.json
``connect``      Resources: Connect code, redemption result; Endpoints: POST /connect/request
``consents``     States: Consent; what a person is told
``events``       Events; Webhook signature
``developer``    Endpoints: the developer endpoints; the developer portal
``pages``        what a person sees; Endpoints: GET /oauth2/auth is ``pages.consent``
===============  ==============================================================================

Beside them ``control`` (the control API under /sandbox/), ``console`` (the developer's start
page), ``instruments`` (clock, switches, faults, request log) and ``server`` (how it runs) are the
sandbox's own. Rules stand in the parts; pages, endpoints, the console and the control API call
them.
"""

from django_identity.sandbox.local_site import sandbox_application

__all__ = ["sandbox_application"]
