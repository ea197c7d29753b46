"""Find linked identities and events by user name, e-mail address, subject or event id."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Collate, Upper
from django.db.models.lookups import StartsWith

from django_identity import conf, database
from django_identity.models import Environment, LinkedIdentity, TokenGrant, WebhookEvent, digest

MOST_FOUND = 200
MOST_NAMED = 1000
SHORTEST_BEGINNING = 4
MOST_SPELLINGS = 16


def find_identities(
    identities: QuerySet[LinkedIdentity], text: str, *, may_see_people: bool
) -> QuerySet[LinkedIdentity]:
    """Filter ``identities`` to those whose user or subject equals or begins with ``text``.

    The full subject is compared exactly under every collation; its beginning needs at least four
    characters. Each way of searching finds at most 200. Without ``may_see_people`` e-mail addresses
    are not searched, because even a match would disclose them.
    """
    wanted = text.strip()
    if not wanted:
        return identities
    names = _names(wanted, may_see_people=may_see_people)
    users = [pk for each in names for pk in _users(each)]
    condition = Q(subject_digest__in=_subject_digests(wanted))
    if len(wanted) >= SHORTEST_BEGINNING:
        condition |= Q(subject__startswith=wanted)
    subjects = LinkedIdentity.objects.filter(condition).values_list("pk", flat=True)
    return identities.filter(Q(user_id__in=users) | Q(pk__in=list(subjects[:MOST_FOUND])))


def _users(condition: Q) -> list[Any]:
    found = database.users().filter(condition).values_list("pk", flat=True)
    return list(found[:MOST_FOUND])


def _names(wanted: str, *, may_see_people: bool) -> Iterator[Q]:
    """A condition for each column with a name. Together no index could serve them."""
    model = get_user_model()
    if not may_see_people:
        name = model.USERNAME_FIELD
        yield _begins(name, wanted) & ~Q(**{f"{name}__contains": "@"})
        return
    held = {field.name for field in model._meta.get_fields()}
    for name in {model.USERNAME_FIELD, model.get_email_field_name()} & held:
        yield _begins(name, wanted)


def _begins(name: str, wanted: str) -> Q:
    """Without regard to case.

    PostgreSQL converts each row to upper case, which takes half the time under the collation "C". A
    site's e-mail addresses have no index, so every row is compared. A column with an index is
    looked up under the beginning in each combination of capital and small letters; PostgreSQL can
    do that under no collation that ignores differences.
    """
    if database.connection().vendor != "postgresql" or not wanted.isascii():
        return Q(**{f"{name}__istartswith": wanted})
    begins = Q(StartsWith(Upper(Collate(name, "C")), wanted.upper()))
    field: Any = get_user_model()._meta.get_field(name)
    has_index = field.unique or field.db_index
    if not has_index or getattr(field, "db_collation", None):
        return begins
    spellings = (Q(**{f"{name}__startswith": text}) for text in _spellings(wanted))
    return begins & Q(*spellings, _connector=Q.OR)


def _spellings(wanted: str) -> list[str]:
    """The beginning of ``wanted`` up to its fifth letter, in all capital and small letters."""
    found = [""]
    for character in wanted:
        cases = {character.lower(), character.upper()}
        if len(found) * len(cases) > MOST_SPELLINGS:
            break
        found = [text + case for text in found for case in cases]
    return found


def with_grant(identities: QuerySet[LinkedIdentity], condition: Q) -> QuerySet[LinkedIdentity]:
    """Filter ``identities`` to those whose grant has ``condition``.

    The list begins with the newest identity. If PostgreSQL looked for the newest one by the primary
    key, it would read all that are newer than the first match. The sum keeps it from that.
    """
    grants = TokenGrant.objects.filter(condition)
    newest = grants.aggregate(newest=Max(F("identity_id") + 0))["newest"]
    return identities.filter(pk__lte=newest or 0, pk__in=grants.values("identity_id"))


def without_grant(identities: QuerySet[LinkedIdentity]) -> QuerySet[LinkedIdentity]:
    """Filter ``identities`` to those without a grant.

    Nothing is due without a grant (a re-fetch that finds none says so), so only the part of the
    index without a due date is read. The list's own queries must not repeat that: few identities
    are named to them. If there are many, a list soon has enough of them.
    """
    # Not ``grant=None``: PostgreSQL would read every grant's row, and not only the index.
    no_grant = ~Exists(TokenGrant.objects.filter(identity=OuterRef("pk")))
    none = LinkedIdentity.objects.filter(no_grant, refetch_due_at=None)
    few = list(none.order_by("-pk").values_list("pk", flat=True)[: MOST_NAMED + 1])
    if len(few) <= MOST_NAMED:
        return identities.filter(pk__in=few)
    return identities.filter(no_grant, refetch_due_at=None)


def find_events(events: QuerySet[WebhookEvent], text: str) -> QuerySet[WebhookEvent]:
    """Filter ``events`` to those whose id or subject equals ``text``."""
    wanted = text.strip()
    if not wanted:
        return events
    ids = [digest(alias, wanted) for alias in conf.aliases()]
    return events.filter(Q(event_digest__in=ids) | Q(subject_digest__in=_subject_digests(wanted)))


def _subject_digests(wanted: str) -> list[str]:
    return [
        digest(alias, environment, wanted)
        for alias in conf.aliases()
        for environment in Environment.values
    ]
