"""The control API under ``/sandbox/``: JSON, for tests and demos, not part of the service.

``access`` checks who may use it. Each other module controls the part with the same name.
"""
