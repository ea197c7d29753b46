"""The icon that browsers ask for by themselves."""

from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import override_settings


@override_settings(
    INSTALLED_APPS=["example_project.circle", *settings.INSTALLED_APPS],
    ROOT_URLCONF="example_project.urls",
)
def test_a_browser_gets_an_icon(client):
    """The address leads to a static file that is there."""
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert answer["Location"].endswith("circle/ring.svg")
    finders.get_finder.cache_clear()
    assert finders.find("circle/ring.svg") is not None
