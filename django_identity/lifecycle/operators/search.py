"""Find linked identities and events by what an operator was told: a name, an address, a subject."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from django_identity import conf
from django_identity.models import Environment, LinkedIdentity, WebhookEvent, digest

MOST_FOUND = 200
SHORTEST_BEGINNING = 4


def find_identities(
    identities: QuerySet[LinkedIdentity], text: str, *, may_see_people: bool
) -> QuerySet[LinkedIdentity]:
    """Those of ``identities`` whose user or subject is, or begins with, ``text``.

    A subject is found whole and exact under every collation, or by its first four characters or
    more. Each way gives 200 at most. Without ``may_see_people`` no e-mail address is searched:
    whether there is one that begins so would be an answer.
    """
    wanted = text.strip()
    if not wanted:
        return identities
    names = _names(wanted, may_see_people=may_see_people)
    users = get_user_model()._default_manager.filter(names).values_list("pk", flat=True)
    subjects = LinkedIdentity.objects.filter(_subjects(wanted)).values_list("pk", flat=True)
    return identities.filter(
        Q(user_id__in=list(users[:MOST_FOUND])) | Q(pk__in=list(subjects[:MOST_FOUND]))
    )


def _names(wanted: str, *, may_see_people: bool) -> Q:
    model = get_user_model()
    if not may_see_people:
        name = model.USERNAME_FIELD
        return Q(**{f"{name}__istartswith": wanted}) & ~Q(**{f"{name}__contains": "@"})
    names = {model.USERNAME_FIELD, model.get_email_field_name()}
    held = {field.name for field in model._meta.get_fields()}
    return Q(*(Q(**{f"{name}__istartswith": wanted}) for name in names & held), _connector=Q.OR)


def _subjects(wanted: str) -> Q:
    exact = Q(subject_digest__in=_subject_digests(wanted))
    if len(wanted) < SHORTEST_BEGINNING:
        return exact
    return exact | Q(subject__startswith=wanted)


def find_events(events: QuerySet[WebhookEvent], text: str) -> QuerySet[WebhookEvent]:
    """Those of ``events`` whose id or subject is exactly ``text``."""
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
