"""What a signed-in person may pass, and why a gate is closed.

Whether a gate is open, which reason counts, and how a recent sign-in is proven, are decided here.
The room only reads, and only the database. Gates, permissions, tags, pages and the admin call
``standing``.

- ``standing``: which gates are open; ``shortfalls``: why the others are closed; ``step_up``
"""
