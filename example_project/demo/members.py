"""Members of the circle who sign in with a password and verify themselves with a code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """An invented person. The password is not secret, because the site runs only locally."""

    name: str
    password: str


MEMBERS = (Member("kemi", "saves-every-month"), Member("tunde", "pays-every-month"))
