"""Every page, at every width, in both colour schemes: it fits, and axe-core finds nothing."""

import pytest

from tests.browser.conftest import Visit
from tests.browser.gallery import (
    BARE_ALONE,
    EVERY_LOOK,
    EXAMPLE_PAGES,
    EXTREMES,
    PAGES,
    Exhibit,
    look_at,
)
from tests.example_project.site import Site

# Another state of a page is the same page: in the bare frame each page is looked at once.
SEEN_IN_FULL = [exhibit for exhibit in PAGES if exhibit.looks == EVERY_LOOK]


@pytest.mark.parametrize("exhibit", EXAMPLE_PAGES, ids=str)
def test_a_page_of_the_example_project(visit: Visit, example_site: Site, exhibit: Exhibit) -> None:
    """At 320 and 1280 px, light and dark: nothing scrolls sideways, axe finds nothing."""
    look_at(visit, example_site, exhibit, "example")


@pytest.mark.parametrize("exhibit", [*SEEN_IN_FULL, *BARE_ALONE], ids=str)
def test_a_page_as_it_comes(visit: Visit, bare_site: Site, exhibit: Exhibit) -> None:
    """The package's pages on a site that adds nothing to them: the extremes of the same."""
    looks = EVERY_LOOK if exhibit in BARE_ALONE else EXTREMES
    look_at(visit, bare_site, exhibit, "bare", looks)
