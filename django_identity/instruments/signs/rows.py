"""All findings of the database: the table of signs, and the questions beside it."""

from datetime import timedelta

from django.db.models import QuerySet

from django_identity.exceptions import SealedValueUnreadable
from django_identity.exceptions.table import hint_of
from django_identity.instruments.signs.finding import (
    Diagnosis,
    Finding,
    Severity,
    fine,
    problem,
    warning,
)
from django_identity.instruments.signs.table import SIGNS, age_of, ago
from django_identity.lifecycle.ground import runs, sealing
from django_identity.models import LinkedIdentity, TokenGrant, WebhookEvent

OPENED = 20
SILENT = timedelta(days=7)
RUN_IT = (
    "Run a worker with beat, or identity_upkeep every minute. The worker must know the tasks"
    " (autodiscover_tasks) and listen to their queue."
)
END_THE_PAUSE = (
    "The service (429) or an operator asked for it. identity_refetch --pause 0 ends it."
)


def of_rows() -> Diagnosis:
    """What the rows tell now, causes before their effects."""
    yield from _keys()
    yield from _upkeep()
    remedies = {hint_of(SealedValueUnreadable.code)} if _is_key_back() else set()
    for sign in SIGNS:
        yield from [each for each in sign.findings() if each.remedy not in remedies]
    yield from _silence()


def figures() -> dict[str, float]:
    """Counts, which end at 100,000, and ages in seconds. An alert compares them."""
    found = dict(figure for sign in SIGNS for figure in sign.figures())
    return {**found, "no_event_for": _silent_for()}


def _keys() -> Diagnosis:
    """Open the newest and the oldest tokens, by an index: of a former key some are left."""
    due = LinkedIdentity.objects.served().filter(refetch_due_at__isnull=False)
    newest = _grants_of(due.order_by("-refetch_due_at"))
    oldest = _grants_of(due.order_by("refetch_due_at"))
    grants = {grant.pk: grant for grant in (*newest, *oldest)}.values()
    opens = [_opens(grant) for grant in grants if not grant.needs_reauthorization]
    closed = opens.count(False)
    if closed:
        message = (
            f"no key opens {closed} of {len(opens)} stored tokens, new and old ones"
        )
        yield problem("keys", message, hint_of(SealedValueUnreadable.code))


def _is_key_back() -> bool:
    """Whether a row that failed without its key opens now. Upkeep tries the others again."""
    failed = LinkedIdentity.objects.filter(refetch_failures__gt=0)
    unopened = failed.filter(last_error=SealedValueUnreadable.code)
    return any(map(_opens, _grants_of(unopened)))


def _grants_of(identities: QuerySet[LinkedIdentity]) -> QuerySet[TokenGrant]:
    """Those of the first of them. MySQL takes no LIMIT in a subquery."""
    keys = list(identities.values_list("pk", flat=True)[:OPENED])
    return TokenGrant.objects.select_related("identity").filter(identity__in=keys)


def _opens(grant: TokenGrant) -> bool:
    column = "refresh_token" if grant.refresh_token else "access_token"
    try:
        sealing.unseal(grant.identity, grant, column)
    except SealedValueUnreadable:
        return False
    return True


def _upkeep() -> Diagnosis:
    """When it ran last, and whether anybody needs it."""
    run = runs.newest()
    if run.is_paused:
        message = f"re-fetches pause until {run.paused_until:%Y-%m-%d %H:%M} UTC"
        yield warning("upkeep", message, END_THE_PAUSE)
    message = "upkeep has not run yet"
    if run.has_begun:
        message = f"upkeep ran at {run.begun_at:%Y-%m-%d %H:%M} UTC"
    if runs.has_begun_lately(run):
        yield fine("upkeep", message)
        return
    due = LinkedIdentity.objects.served().filter(refetch_due_at__isnull=False)
    level = Severity.PROBLEM if due.exists() else Severity.WARNING
    yield Finding("upkeep", level, message, RUN_IT)


def _silence() -> Diagnosis:
    """Only information: a small site may wait for weeks."""
    newest = WebhookEvent.objects.filter(received_at__gte=ago(SILENT))
    if not newest.exists():
        message = (
            f"no event in {SILENT.days} days. If people signed in meanwhile: is the webhook's"
            " address registered? A POST without a signature must answer 401 there"
        )
        yield fine("webhook", message)


def _silent_for() -> float:
    """Since the newest event. If there was none ever, since the first link."""
    received = WebhookEvent.objects.order_by("-received_at")
    newest = received.values_list("received_at", flat=True).first()
    if newest is None:
        linked = LinkedIdentity.objects.order_by("pk")
        newest = linked.values_list("created_at", flat=True).first()
    return age_of(newest)
