"""The sandbox, an application and a person there."""

from tests.sandbox.conftest import application, person, sandbox

__all__ = ["application", "person", "sandbox"]
