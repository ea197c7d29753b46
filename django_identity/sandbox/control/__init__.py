"""The control API under ``/sandbox/``: JSON, from this machine only, not part of the service."""
