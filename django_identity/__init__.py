"""A Django site as a relying party of the identity verification service.

The packages and modules, lowest layer first. A layer imports only from layers before it, and
``.importlinter`` has all of them:

- ``exceptions``: every error for a site to catch; ``conf``: the settings; ``policy``: what a site
  decides; ``background``: publishing to Celery; ``vault``: encryption
- ``service/``: HTTP in both directions
- ``credentials/``: pure functions that verify an SD-JWT
- ``models/``: the database tables
- ``texts/``: sentences for people, in their language
- ``lifecycle/``: all rules and transactions, a room for each moment
- ``flows``: what a site's own code may call
- ``web/``, ``views/``, ``gates/``, ``api/``, ``documents/``, ``tasks``, ``admin/`` and commands:
  each turns a request into a call of ``lifecycle/``, and its result into a response
- ``instruments/``, ``checks/``, ``testing/``: what proves a site, and its tests

``sandbox/`` is a separate Django project that plays the whole service locally.
"""
