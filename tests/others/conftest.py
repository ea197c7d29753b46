"""The sandbox, an application and a person there."""

from tests.sandbox.conftest import (
    application,
    person,
    running_sandbox,
    sandbox,
    switches_at_the_start,
)

__all__ = ["application", "person", "running_sandbox", "sandbox", "switches_at_the_start"]
