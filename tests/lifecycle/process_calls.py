"""What the processes of ``tests.concurrency`` call."""

import os
import signal
from typing import Any

from django.db import connection

from django_identity.lifecycle.said import due
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import LinkedIdentity


def access_token(identity_id: str) -> str:
    return access_token_for(LinkedIdentity.objects.get(pk=identity_id)).reveal()


def take() -> list[int]:
    """What one worker takes."""
    taken: list[int] = []
    while rows := due.take(7):
        taken += [row.pk for row in rows]
    return taken


def killed_access_token(identity_id: str, moment: str, number: str) -> str:
    """As ``access_token``, by a process that is killed ``before`` or ``after`` its n-th UPDATE."""
    left = int(number)

    def execute(run: Any, sql: str, *rest: Any) -> Any:
        nonlocal left
        left -= sql.startswith("UPDATE")
        is_the_one = left == 0 and sql.startswith("UPDATE")
        if is_the_one and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = run(sql, *rest)
        if is_the_one:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    with connection.execute_wrapper(execute):
        return access_token(identity_id)
