"""Every page, at every width, in both colour schemes: it fits, and axe-core finds nothing."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Visit
from tests.browser.gallery import (
    BARE_ALONE,
    EVERY_LOOK,
    EXAMPLE_PAGES,
    EXTREMES,
    PAGES,
    Exhibit,
    Look,
)
from tests.browser.looking import overflow, shoot, violations
from tests.example_project.site import Site

pytestmark = pytest.mark.browser

# Another state of a page is the same page: in the bare frame each page is looked at once.
SEEN_IN_FULL = [exhibit for exhibit in PAGES if exhibit.looks == EVERY_LOOK]
# Between the extremes the layout is one of theirs, and the colours are the same.
WIDTHS_FOR_AXE = (320, 1280)


@pytest.mark.parametrize("exhibit", EXAMPLE_PAGES, ids=str)
def test_a_page_of_the_example_project(visit: Visit, example_site: Site, exhibit: Exhibit) -> None:
    """At 320, 768 and 1280 px, light and dark: nothing scrolls sideways, axe finds nothing."""
    look_at(visit, example_site, exhibit, exhibit.looks, "example")


@pytest.mark.parametrize("exhibit", [*SEEN_IN_FULL, *BARE_ALONE], ids=str)
def test_a_page_as_it_comes(visit: Visit, bare_site: Site, exhibit: Exhibit) -> None:
    """The package's pages on a site that adds nothing to them: the extremes of the same."""
    looks = EVERY_LOOK if exhibit in BARE_ALONE else EXTREMES
    look_at(visit, bare_site, exhibit, looks, "bare")


def look_at(
    visit: Visit, site: Site, exhibit: Exhibit, looks: tuple[Look, ...], folder: str
) -> None:
    visitor = visit(site, person=exhibit.person)
    exhibit.way(visitor)
    policy = [text for text in visitor.complaints if "Content Security Policy" in text]
    assert policy == [], "the strict policy of the site breaks something"
    for width, scheme in looks:
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.page.set_viewport_size({"width": width, "height": 800})
        shoot(visitor.page, f"{folder}/{exhibit.name}-{width}-{scheme}")
        assert overflow(visitor.page) == [], f"{width} px"
        if width in WIDTHS_FOR_AXE:
            assert violations(visitor.page) == [], f"{width} px, {scheme}"
