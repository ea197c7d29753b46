"""Instruments by which an operator looks at a site. They read the core, which does not know them.

- ``signs``: all that needs an operator (``identity_doctor``, and the overview of the admin)
- ``gate_map``: every address and its requirements (``identity_gates``)
- ``drill``: the promises, tried at the site itself (``identity_drill``)
- ``verify``: the checks of one credential (``identity_verify``)
"""
