"""System checks, each with an id. ``docs/checks.md`` lists them.

``applications``: the keys of ``DJANGO_IDENTITY`` · ``development``: what no site may install ·
``pages``: sessions, addresses, headers · ``storage``: databases and caches · ``users``: the user
model
"""

from typing import Any

from django.core.checks import CheckMessage, Tags, register

from django_identity import conf
from django_identity.checks import applications, development, pages, storage, users


def check_installation(**_kwargs: Any) -> list[CheckMessage]:
    """Check the other settings that the package depends on."""
    if any(problem.fatal for problem in conf.problems()):
        return []
    found = [each for room in (applications, pages, storage) for each in room.problems()]
    for application in conf.applications():
        for room in (applications, pages, users):
            found += room.problems_of(application)
    return found


def register_all() -> None:
    """Register every check, once the models are loaded."""
    for check in (
        applications.check_applications,
        check_installation,
        development.check_development_only,
        development.check_sandbox_application,
    ):
        register(check, Tags.security)
    register(development.check_deployed_sandbox_application, Tags.security, deploy=True)
