"""Instruments by which an operator looks at a site. They read the core, which does not know them.

- ``signs``: all that needs an operator (``identity_doctor``, and the overview of the admin)
- ``gate_map``: every address and its requirements (``identity_gates``)
- ``audit``: whether any table still has anything of a person (``identity_erase --audit``)
- ``verify``: the checks of one credential (``identity_verify``)
"""
