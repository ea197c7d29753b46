"""What a signed-in person may pass, and why not.

Here it is decided whether a gate is open, which reason counts, and how a recent sign-in is proven.
Nothing is written here, and no service is asked. Gates, permissions, tags, pages and the admin
call ``standing``.

- ``standing``: which gates are open; ``shortfalls``: why the others are closed; ``step_up``
"""
