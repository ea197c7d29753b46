"""Everything for the site's operators.

- ``timeline``: the history of one identity
- ``interventions``: the actions of an operator
- ``rotation``: the rotation of the tokens to a new encryption key
"""
