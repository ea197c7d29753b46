"""drf-spectacular describes the API by its own introspection."""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# In a process of its own: Django REST framework reads its setting when a view is imported.
MAKE = ("manage.py", "spectacular", "--settings", "tests.api.openapi_settings", "--fail-on-warn")


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
