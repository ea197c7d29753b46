"""The rotation of the grants' tokens to the first key. Started sign-ins are over in minutes."""

from collections import Counter
from collections.abc import Iterator

from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, vault
from django_identity.models import TokenGrant

ROWS_AT_ONCE = 200
SEALED = ("access_token", "refresh_token")
# What became of a grant's tokens. Newer ones were stored meanwhile, under the first key already.
RESEALED, OVERTAKEN, UNREADABLE = "re-encrypted", "renewed meanwhile", "opened by no key"


def rotate_keys(*, after: int = 0, size: int = ROWS_AT_ONCE) -> Iterator[tuple[int, Counter[str]]]:
    """Re-encrypt the tokens of the grants behind the key ``after``, in batches that are committed.

    Yields the key of the last grant of each batch, and what became of how many. Tokens that no key
    opens are left: the key may only be missing from the settings.
    """
    rows = TokenGrant.objects.select_related("identity").order_by("pk")
    while batch := list(rows.filter(pk__gt=after)[:size]):
        with database.atomic():
            fates = Counter(map(_rotated, batch))
        after = batch[-1].pk
        yield after, fates


@sensitive_variables()
def _rotated(grant: TokenGrant) -> str:
    """Re-encrypt the tokens of one grant, unless no key opens one of them."""
    if grant.identity.application not in conf.aliases():
        return UNREADABLE
    keys = conf.application(grant.identity.application).encryption_keys
    held = {name: getattr(grant, name) for name in SEALED}
    fresh = {name: text and vault.rotate(text, keys=keys) for name, text in held.items()}
    if None in fresh.values():
        return UNREADABLE
    same = TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation)
    return RESEALED if same.update(**fresh) else OVERTAKEN
