"""The rotation of the grants' tokens to the first key. Started sign-ins are over in minutes."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, vault
from django_identity.models import TokenGrant

ROWS_AT_ONCE = 200
SEALED = ("access_token", "refresh_token")


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of the tokens of some grants. ``last``: the key of the last grant.

    ``overtaken``: newer tokens were stored meanwhile. ``unreadable``: no key opens them.
    """

    last: int
    resealed: int
    overtaken: int
    unreadable: int

    @property
    def seen(self) -> int:
        return self.resealed + self.overtaken + self.unreadable


def rotate_keys(*, after: int = 0, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
    """Re-encrypt the tokens of the grants behind the key ``after``, in batches that are committed.

    Tokens that the site stores meanwhile are under the first key already and are not overwritten.
    Those that no key opens are left: the key may only be missing from the settings.
    """
    rows = TokenGrant.objects.select_related("identity").order_by("pk")
    while batch := list(rows.filter(pk__gt=after)[:size]):
        fresh = {grant: _resealed(grant) for grant in batch}
        readable = {grant: tokens for grant, tokens in fresh.items() if tokens is not None}
        with database.atomic():
            written = sum(
                TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation).update(**tokens)
                for grant, tokens in readable.items()
            )
        after = batch[-1].pk
        yield Batch(after, written, len(readable) - written, len(batch) - len(readable))


@sensitive_variables()
def _resealed(grant: TokenGrant) -> dict[str, str] | None:
    """The tokens under the first key, or None if no key opens one of them."""
    if grant.identity.application not in conf.aliases():
        return None
    keys = conf.application(grant.identity.application).encryption_keys
    held = {name: getattr(grant, name) for name in SEALED if getattr(grant, name)}
    fresh = {name: vault.rotate(sealed, keys=keys) for name, sealed in held.items()}
    return {name: value for name, value in fresh.items() if value} if all(fresh.values()) else None
