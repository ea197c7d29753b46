"""Whether an erasure left anything of a person in the site's database."""

from collections.abc import Collection

from django.contrib.auth.models import AbstractBaseUser

from django_identity import conf
from django_identity.instruments import audit
from django_identity.models import digest
from django_identity.testing.sandbox import SandboxPerson


def assert_erased(
    *person: AbstractBaseUser | SandboxPerson | str,
    unread: Collection[str] = (),
) -> None:
    """Fail, by model and field, if a table has anything of ``person``, or could not be read.

    ``person``: the user as the test has kept it in memory, the person at the sandbox, and any other
    text that must be gone, of four letters at least. ``unread``: what may stay unread, as the
    failure names it. The test needs access to all databases of the site.
    """
    if not person:
        raise ValueError("nobody is named, so a search would prove nothing")
    found = audit.search(known_of(*person))
    if found.hits:
        left = ", ".join(f"{place} ({number})" for place, number in found.hits.items())
        raise AssertionError(f"the erasure left something in {left}")
    unexpected = {
        place: why for place, why in found.unread.items() if place not in unread
    }
    if unexpected:
        reasons = ", ".join(f"{place} ({why})" for place, why in unexpected.items())
        raise AssertionError(
            f"{len(unexpected)} place(s) were not read: {reasons}. If nothing of the person can be"
            f" there, name them: unread={sorted(unexpected)}",
        )


def known_of(*person: AbstractBaseUser | SandboxPerson | str) -> audit.Known:
    """What an erasure of ``person`` has to take away."""
    known = audit.Known()
    for part in person:
        known |= _known_of(part)
    return known


def _known_of(part: AbstractBaseUser | SandboxPerson | str) -> audit.Known:
    if isinstance(part, str):
        if audit.is_short(part):
            raise ValueError(f"{part!r} is too short: it is in longer words by chance")
        return audit.Known(frozenset({part}))
    if isinstance(part, SandboxPerson):
        subject = digest(conf.application().environment, part.user_id)
        return audit.Known(frozenset({part.user_id, part.email, subject}))
    return audit.known_of_account(part)
