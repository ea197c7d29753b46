"""The example project without a limit of tries: see ``site.main``."""

from example_project.settings import *  # noqa: F403
