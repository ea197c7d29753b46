"""People with a password: members who verify themselves with a code, and operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """An invented person. The password is not secret, because the site runs only locally."""

    name: str
    password: str


MEMBERS = (Member("kemi", "saves-every-month"), Member("tunde", "pays-every-month"))
#: May look at everything in the admin, and do nothing.
OPERATOR = Member("operator", "looks-after-the-circle")
SUPERUSER = Member("admin", "runs-the-circle")
