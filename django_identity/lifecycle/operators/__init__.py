"""What the site's operators see and do.

What an operator may end, erase or ask for, and the history of an identity, are decided here. What
each of these does to a person is decided in ``leaving`` and ``ground``. The admin and commands call
it.

- ``timeline``: the history of one identity; ``interventions``: the actions of an operator
- ``rotation``: the rotation of the tokens to a new encryption key
"""
