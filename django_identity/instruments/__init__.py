"""What an operator looks at a site with. They read the core, and the core does not know them.

- ``signs``: what needs somebody (``identity_doctor``, and the overview of the admin)
- ``gate_map``: every address, and what it asks for (``identity_gates``)
- ``drill``: the promises, tried at the site itself (``identity_drill``)
- ``verify``: what one credential proves (``identity_verify``)
"""
