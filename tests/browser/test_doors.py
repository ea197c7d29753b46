"""Ways around a gate, tried with a browser: each of them is shut."""

import pytest

from tests.browser.conftest import Visit
from tests.example_project.site import Site

OUTSIDE = ("", "unlinked", "by_code", "run_out")


@pytest.mark.parametrize("door", ["cached", "stacked", "parts"])
def test_only_who_has_the_proof_sees_the_page(visit: Visit, bare_site: Site, door: str) -> None:
    """After an adult was there, nobody else finds what they saw; the adult finds it again."""
    adult = visit(bare_site, person="proven")
    adult.go(f"/doors/{door}/")
    assert "secret" in adult.page.content()
    assert "secret of nobody" not in adult.page.content()
    for person in OUTSIDE:
        stranger = visit(bare_site, person=person)
        stranger.go(f"/doors/{door}/")
        assert "secret" not in stranger.page.content(), person
    adult.go(f"/doors/{door}/")
    assert "secret" in adult.page.content()
