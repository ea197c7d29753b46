"""A site that adopts the package's pages as they are: no templates and styles of its own."""

from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS

INSTALLED_APPS = [app for app in INSTALLED_APPS if app != "example_project.circle"]
ROOT_URLCONF = "tests.example_project.bare_urls"
SESSION_COOKIE_SAMESITE = "Strict"
IDENTITY_LOCAL_SIGN_IN_URL = None
