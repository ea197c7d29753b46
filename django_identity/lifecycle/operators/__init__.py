"""Everything for the site's operators.

- ``overview``: figures
- ``timeline``: the history of one identity
- ``interventions``: the actions of an operator
- ``doctor``: finds problems of the installation
- ``rotation``: the rotation of the tokens to a new encryption key
"""
