"""A Django site as a relying party of the identity verification service.

The packages and modules, lowest layer first. A layer imports only from layers before it:

- ``exceptions``: every error for a site to catch; ``conf``: the settings; ``vault``: encryption;
  ``strict_json``: the JSON reader; ``background``: publishing to Celery
- ``service/``: HTTP in both directions
- ``credentials/``: pure functions that verify an SD-JWT
- ``models/``: the database tables
- ``texts/``: sentences for people, in their language
- ``lifecycle/``: all rules and transactions, a file for each word
- ``views/``, ``gates/``, ``api/``, ``tasks``, ``admin/`` and commands: each calls one function of
  ``lifecycle/`` and turns its result into a response

``sandbox/`` is a separate Django project that plays the whole service locally.
"""
