"""Async views below a path."""

from concurrent.futures import ThreadPoolExecutor

from tests.sites.browser import Browser
from tests.sites.site_table import steps_of

PEOPLE = 8
pytestmark = steps_of("subpath")


def test_many_at_once_are_not_mixed_up(site, sandbox):
    """Each person sees their own claims, while others are answered in the same loop."""
    with (
        Browser(site) as adult,
        Browser(site) as stranger,
        ThreadPoolExecutor(PEOPLE) as threads,
    ):
        adult.sign_in(sandbox.create_person())
        stranger.sign_in(sandbox.create_person(verified=False))
        asked = [(adult, "wine"), (stranger, "juice")] * PEOPLE * 2
        answers = threads.map(lambda each: each[0].fetch("/offer/").text, asked)
        assert list(answers) == [expected for _, expected in asked]
