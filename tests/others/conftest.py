"""The sandbox, an application and a person there."""

from tests.sandbox.conftest import application, person, running_sandbox, sandbox

__all__ = ["application", "person", "running_sandbox", "sandbox"]
