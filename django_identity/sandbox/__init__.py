"""The identity verification service, played locally: a Django project of its own.

``python -m django_identity.sandbox`` serves it; nothing else of ``django_identity`` imports it and
it imports nothing else of ``django_identity``, so it is a second, independent reading of the
service's specification.

=======================  ======================================================================
file                     part of the specification
=======================  ======================================================================
``models``               Resources and their fields
``envelope``             Resources: response envelope; Errors
``oauth``                Authentication: OAuth 2.0 with PKCE, refresh rotation, environments
``token_endpoint``       Endpoints: POST /oauth2/token (GET /oauth2/auth is ``pages.consent``)
``user_endpoints``       Endpoints: GET /users/:userId/profile, /kyc and /claims
``credentials``          Resources: Credential
``key_set``              Endpoints: GET /.well-known/jwks.json
``claims``               States: Claim
``consents``             States: Consent
``deletion``             Events: data.deletion_requested
``happenings``           Events: what is announced, and who hears of it
``events``               Events: types and payloads
``webhooks``             Webhook signature: one request to an application
``deliveries``           what is sent until it is acknowledged; ``webhook_models`` keeps it,
                         ``sender`` sends it, ``trigger`` sends one by hand
``developer_endpoints``  Endpoints: the developer endpoints
``portal``               what a developer sees: applications, secrets, deliveries
``verification``         Limits: sandbox rules, the test bank verification numbers
``pages``                what a person sees: sign-in, verification, consent, account
``control``              the control API under /sandbox/, which is the sandbox's own
``clock``                the time by which everything above expires
``switches``             the choices where the specification allows several readings
``faults``               the misbehaviour that can be ordered; ``fault_injection`` delivers it
``request_log``          what was received
``server``               the HTTP server; ``database`` its schema; ``settings`` its Django settings
=======================  ======================================================================
"""
