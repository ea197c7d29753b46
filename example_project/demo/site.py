"""The site's process: migrate, create members, serve.

``python -m example_project.demo.site PORT``
"""

from __future__ import annotations

import sys

import django
from django.contrib.auth import get_user_model
from django.core.management import call_command

from example_project.demo.members import MEMBERS


def make_members() -> None:
    """Create the members that do not exist yet."""
    users = get_user_model()._default_manager
    for member in MEMBERS:
        if not users.filter(username=member.name).exists():
            users.create_user(member.name, password=member.password)


if __name__ == "__main__":
    django.setup()
    call_command("migrate", verbosity=0)
    make_members()
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False)
