"""Whether an erasure left anything of a person in the site's database."""

from collections.abc import Collection, Mapping

from django.contrib.auth.models import AbstractBaseUser

from django_identity import conf
from django_identity.lifecycle import audit
from django_identity.models import digest
from django_identity.testing.sandbox import SandboxPerson


def assert_erased(
    *person: AbstractBaseUser | SandboxPerson | str, unread: Collection[str] = ()
) -> None:
    """Fail, by model and field, if a table has anything of ``person``, or could not be read.

    ``person``: the user as the test has kept it in memory, the person at the sandbox, and any other
    text that must be gone. ``unread``: what may stay unread, as the failure names it. The test
    needs access to all databases of the site.
    """
    found = audit.search(known_of(*person))
    if found.hits:
        raise AssertionError(f"the erasure left something in {_listed(found.hits)}")

    unexpected = dict(found.unread)
    for place in unread:
        unexpected.pop(place, None)
    if unexpected:
        raise AssertionError(
            f"{len(unexpected)} place(s) were not read: {_listed(unexpected)}. If nothing of the"
            f" person can be there, name them: unread={sorted(unexpected)}"
        )


def known_of(*person: AbstractBaseUser | SandboxPerson | str) -> audit.Known:
    """What an erasure of ``person`` has to take away."""
    known = audit.Known()
    for one in person:
        if isinstance(one, str):
            known |= audit.Known(frozenset({one}))
        elif isinstance(one, SandboxPerson):
            known |= _known_of_subject(one)
        else:
            known |= audit.known_of_account(one)
    return known


def _known_of_subject(person: SandboxPerson) -> audit.Known:
    texts = {person.user_id, person.email}
    for site in conf.applications():
        texts.add(digest(site.alias, site.environment, person.user_id))
    return audit.Known(frozenset(texts))


def _listed(places: Mapping[str, object]) -> str:
    return ", ".join(f"{place} ({what})" for place, what in places.items())
