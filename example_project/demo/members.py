"""Members of the circle who sign in with a password: they verify themselves with a code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """Made-up, on a site that runs on one's own machine: the password is no secret."""

    name: str
    password: str


MEMBERS = (Member("kemi", "saves-every-month"), Member("tunde", "pays-every-month"))
