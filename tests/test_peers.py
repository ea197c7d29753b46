"""The benchmark beside other packages runs by hand only; here it is kept from rotting."""

from __future__ import annotations

import py_compile
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.benchmarks.peers import environment, measuring, table

HERE = Path(environment.__file__).parent
PEERS = {
    "authlib", "dj-stripe", "django-allauth", "joserfc", "mozilla-django-oidc", "pyjwt", "sd-jwt",
    "social-auth-app-django",
}  # fmt: skip
SITES = {name.split()[0] for name in measuring.SIGN_IN + measuring.WEBHOOK + measuring.START_UP}


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.py")), ids=lambda path: path.name)
def test_each_file_compiles(path: Path, tmp_path: Path) -> None:
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)


def test_every_peer_is_pinned_to_one_version() -> None:
    lines = environment.REQUIREMENTS.read_text().splitlines()
    wanted = [Requirement(line) for line in lines if not line.startswith("#")]
    assert {requirement.name.lower() for requirement in wanted} >= PEERS
    assert all(str(requirement.specifier).startswith("==") for requirement in wanted)


@pytest.mark.parametrize("name", sorted(SITES))
def test_each_site_is_complete(name: str) -> None:
    """Its settings load without the peer, and its addresses stand beside them."""
    site = import_module(f"tests.benchmarks.peers.sites.{name}")
    assert isinstance(site.settings("http://127.0.0.1:1"), dict)
    assert all(isinstance(each, list) for each in (site.APPS, site.MIDDLEWARE, site.BACKENDS))
    assert (HERE / "sites" / f"{name}_urls.py").exists()
    assert name not in measuring.SIGN_IN or site.START.startswith("/")


def test_the_table_has_a_row_for_each_figure() -> None:
    """A ratio above 1 says that the peer takes longer."""
    work = {name: {"cpu_ms": 2.0, "queries": 9.0} for name in measuring.SIGN_IN}
    work["ours"] = {"cpu_ms": 1.0, "queries": 8.0}
    start = {"cpu_ms": 5.0, "megabytes": 3.0}
    text = table.as_markdown(
        {
            "machine": {
                "date": "2026-11-22", "python": "3.11.7", "processors": 2, "database": "sqlite",
                "load": [1.0, 2.0], "versions": {"django": "5.2.19"},
            },
            "sign_in": work,
            "webhook": dict.fromkeys(measuring.WEBHOOK, work["ours"]),
            "verification": {"4": {"ours": {"cpu_ms": 0.1}, "sd_jwt": {"cpu_ms": 0.2}}},
            "start_up": {
                name: {"set_up": start, "with_urls": start} for name in measuring.START_UP
            },
        }
    )  # fmt: skip
    row = "| sign-in of a returning person | django-allauth | 2.0 | 9 |  | 2.00 |"
    assert row in text.splitlines()
    assert len(text.splitlines()) == 4 + 7 + 2 + 2 + 2 * len(measuring.START_UP)
