"""Find linked identities and events by user name, e-mail address, subject or event id."""

from django.contrib.auth import get_user_model
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Collate, Upper
from django.db.models.lookups import StartsWith

from django_identity import conf, database
from django_identity.models import Environment, LinkedIdentity, TokenGrant, WebhookEvent, digest

MOST_FOUND = 200
MOST_NAMED = 1000
SHORTEST_BEGINNING = 4


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
    users = database.users().filter(names).values_list("pk", flat=True)
    condition = Q(subject_digest__in=_subject_digests(wanted))
    if len(wanted) >= SHORTEST_BEGINNING:
        condition |= Q(subject__startswith=wanted)
    subjects = LinkedIdentity.objects.filter(condition).values_list("pk", flat=True)
    return identities.filter(
        Q(user_id__in=list(users[:MOST_FOUND])) | Q(pk__in=list(subjects[:MOST_FOUND]))
    )


def _names(wanted: str, *, may_see_people: bool) -> Q:
    model = get_user_model()
    if not may_see_people:
        name = model.USERNAME_FIELD
        return _begins(name, wanted) & ~Q(**{f"{name}__contains": "@"})
    names = {model.USERNAME_FIELD, model.get_email_field_name()}
    held = {field.name for field in model._meta.get_fields()}
    return Q(*(_begins(name, wanted) for name in names & held), _connector=Q.OR)


def _begins(name: str, wanted: str) -> Q:
    """Without regard to case.

    PostgreSQL converts each row to upper case, which takes half the time under the collation "C". A
    site's e-mail addresses have no index, so every row is compared.
    """
    if database.connection().vendor != "postgresql" or not wanted.isascii():
        return Q(**{f"{name}__istartswith": wanted})
    return Q(StartsWith(Upper(Collate(name, "C")), wanted.upper()))


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

    Finding that there are few of them takes one pass over two indexes, which the list's own queries
    must not repeat. If there are many, a list soon has enough of them.
    """
    # Not ``grant=None``: PostgreSQL would read every grant's row, and not only the index.
    no_grant = ~Exists(TokenGrant.objects.filter(identity=OuterRef("pk")))
    missing = LinkedIdentity.objects.filter(no_grant).order_by("-pk").values_list("pk", flat=True)
    few = list(missing[: MOST_NAMED + 1])
    return identities.filter(Q(pk__in=few) if len(few) <= MOST_NAMED else no_grant)


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
