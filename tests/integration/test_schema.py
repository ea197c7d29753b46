"""drf-spectacular describes the API by its own introspection."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.api.test_api import MEMBERS

PROBLEM = "application/problem+json"
ROOT = Path(__file__).resolve().parents[2]
# In a process of its own: Django REST framework reads its setting when a view is imported.
MAKE = (
    "manage.py",
    "spectacular",
    "--settings",
    "tests.api.openapi_settings",
    "--fail-on-warn",
)


def test_a_schema_has_each_endpoint_with_its_members() -> None:
    """Without a warning; what is asked for is write-only, what is answered read-only."""
    made = subprocess.run(
        [sys.executable, *MAKE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    schema = yaml.safe_load(made.stdout)
    names = ("me", "login", "callback", "connect", "disconnect")
    assert schema["paths"].keys() == {f"/identity/api/{name}" for name in names}
    members = schema["components"]["schemas"]["Login"]["properties"]
    assert members["next"]["writeOnly"]
    assert members["authorization_url"]["readOnly"]
    assert "claims" in schema["components"]["schemas"]["Me"]["properties"]
    for name in names:
        (operation,) = schema["paths"][f"/identity/api/{name}"].values()
        assert operation["responses"].keys() == {"200", "4XX", "5XX"}
        for status in ("4XX", "5XX"):
            assert operation["responses"][status]["content"].keys() == {PROBLEM}
        problem = members_of(schema, operation["responses"]["4XX"])
        assert problem >= MEMBERS
        assert ("code_spent" in problem) is (name == "connect")


def members_of(schema: Any, response: Any) -> set[str]:
    """The members that every body of ``response`` has."""
    kind = response["content"][PROBLEM]["schema"]["$ref"].rpartition("/")[2]
    return set(schema["components"]["schemas"][kind]["required"])
