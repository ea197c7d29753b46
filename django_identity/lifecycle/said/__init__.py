"""What the service says: by its events, and by its answers.

The effect of an event, the changes by an answer, and who may ask for a new token are decided here.
Whether a gate is open is decided in ``standing``. ``arriving``, ``minute`` and the view of the
webhook call it.

- ``events``: one delivery; ``effects``: its effect, also of a late one
- ``claims``: the changes by a credential; ``scopes``: how a gate with a scope opens
- ``tokens``: who may refresh; ``grants``: the row of the tokens; ``key_sets``: which keys count
- ``due``: when an identity is due
"""
