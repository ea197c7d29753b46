"""How a person leaves, and what is told about a person.

Here it is decided what a disconnection and an erasure delete, and which tables have personal data.
What ends with a consent is decided in ``ground.withdrawal``, which every end shares. Pages, the
API, commands, ``said`` and ``operators`` call it.

- ``disconnecting``: the end of a link; ``erasure``: what erases
- ``dossier``: all tables with personal data
"""
