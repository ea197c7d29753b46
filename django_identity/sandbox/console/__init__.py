"""The console at ``/``: what happens, a credential taken apart, and what a test would do.

Not part of the service. It shows and calls the other parts and has no rules of its own.
"""
