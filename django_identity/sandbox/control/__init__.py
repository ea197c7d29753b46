"""The control API under ``/sandbox/``: JSON, for tests and demos, not part of the service.

``access`` says who may ask; each other file controls the part that it is named after.
"""
