"""What the site's operators see and do.

Here it is decided what an operator may end, erase or ask for, and how its history is told. What
each of these does to a person is decided in ``leaving`` and ``ground``. The admin and commands call
it.

- ``timeline``: the history of one identity; ``interventions``: the actions of an operator
- ``rotation``: the rotation of the tokens to a new encryption key
"""
