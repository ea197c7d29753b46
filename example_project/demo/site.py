"""The site's process: migrate, create members, what else is wanted, serve.

``python -m example_project.demo.site PORT [operators] [history]``
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import django
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler
from django.utils.module_loading import import_string

from example_project.demo.members import MEMBERS, OPERATOR, SUPERUSER, Member

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

OPERATORS, HISTORY = "operators", "history"


def make_members() -> None:
    """Create the members that do not exist yet."""
    for member in MEMBERS:
        _make(member)


def make_operators() -> None:
    """Create an operator who may look, and a superuser, unless they exist."""
    operator = _make(OPERATOR, is_staff=True)
    looks = apps.get_model("auth", "Permission")._default_manager.filter(
        content_type__app_label__in=("django_identity", "auth"),
        codename__startswith="view_",
    )
    operator.user_permissions.set(looks)
    _make(SUPERUSER, is_staff=True, is_superuser=True)


def _make(member: Member, **fields: bool) -> AbstractUser:
    """The account of ``member``, created if it does not exist."""
    users: Any = get_user_model()._default_manager
    found: AbstractUser | None = users.filter(username=member.name).first()
    return found or users.create_user(member.name, password=member.password, **fields)


def main(port: str, *wanted: str) -> None:
    """Serve on ``port`` once everything is there."""
    django.setup()
    call_command("migrate", verbosity=0)
    make_members()
    if OPERATORS in wanted:
        make_operators()
    if HISTORY in wanted:
        # Named, not imported: models can be loaded now and not before.
        import_string("example_project.demo.history.make_history")()
    # Else an answer on a kept connection waits 40 ms, until its head has been acknowledged.
    WSGIRequestHandler.disable_nagle_algorithm = True
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
