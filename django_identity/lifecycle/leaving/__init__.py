"""How a person leaves, and all data about a person.

The deletions of a disconnection and an erasure are decided here, and the list of tables with
personal data. The end of a consent is decided in ``ground.withdrawal``, as every end shares it.
Pages, the API, commands, ``said`` and ``operators`` call it.

- ``disconnecting``: the end of a link; ``erasure``: what is erased at once;
  ``pending_erasures``: what waits of one
- ``dossier``: all tables with personal data
"""
