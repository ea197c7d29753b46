"""The table of signs: rows that need an operator.

An index finds the rows of each sign, also among millions. Counts end at ``MOST_COUNTED``.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.event_types import KINDS
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.exceptions.table import ERRORS, hint_of
from django_identity.instruments.signs.finding import Diagnosis, Finding, Severity
from django_identity.lifecycle.ground import runs
from django_identity.models import (
    AuthorizationRequest,
    Environment,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from django_identity.models.querysets import MOST_COUNTED

A_DAY = timedelta(days=1)
A_MONTH = timedelta(days=30)
MANY_FAILURES = 5
MOST_REASONS = 5
# Of all events it would take as long as there are events.
MOST_EVENTS = 1_000
# The failures of a sign-in that the site's settings cause.
OF_SETTINGS = (
    "client_rejected",
    "configuration",
    "credential_rejected",
    "environment_mismatch",
    "sealed_value_unreadable",
    "subject_unknown",
    "unexpected_redirect",
)

Rows = QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Sign:
    """Rows that need somebody. ``since``: the column whose oldest time is a figure.

    ``by``: the column with the reason. If it is a code, the error table has its remedy.
    """

    name: str
    message: str
    remedy: str
    rows: Callable[[], Rows]
    since: str = ""
    by: str = ""
    level: Severity = Severity.PROBLEM

    def findings(self) -> Diagnosis:
        """One, or one for each of the most frequent reasons."""
        for reason, count in self._counts().most_common(MOST_REASONS):
            message = f"{self.message}: {count}"
            if count >= MOST_COUNTED:
                message += " or more"
            if self.by:
                message += f", {reason or 'no reason kept'}"
            remedy = hint_of(reason) if reason in ERRORS else self.remedy
            yield Finding(self.name, self.level, message, remedy)

    def figures(self) -> Iterator[tuple[str, float]]:
        """The number, and the age of the oldest in seconds."""
        yield self.name, float(self._counts().total())
        if self.since:
            oldest = self.rows().aggregate(at=Min(self.since))["at"]
            yield f"oldest_{self.name}", age_of(oldest)

    def _counts(self) -> Counter[str]:
        rows = self.rows()
        if self.by:
            return Counter(rows.values_list(self.by, flat=True)[:MOST_COUNTED])
        return +Counter({"": rows[:MOST_COUNTED].count()})


def age_of(at: datetime | None) -> float:
    """The seconds since then; 0 if it is missing or ahead."""
    if at is None:
        return 0.0
    return max(0.0, (timezone.now() - at).total_seconds())


def ago(span: timedelta) -> datetime:
    return timezone.now() - span


def _identities(**columns: Any) -> Rows:
    return LinkedIdentity.objects.served().filter(**columns)


def _receipts(**columns: Any) -> Rows:
    return ErasureReceipt.objects.filter(**columns)


def _done(**columns: Any) -> Rows:
    return _receipts(erased_at__gte=ago(A_MONTH), **columns)


def of_environment(*, other: bool = False) -> Rows:
    """The identities of the settings' environment, or those of the other one."""
    used = conf.application().environment
    wanted = {*Environment.values} - {used} if other else {used}
    return LinkedIdentity.objects.filter(environment__in=wanted)


def _unlinked() -> Rows:
    newest = WebhookEvent.objects.aggregate(pk=Max("pk"))["pk"] or 0
    linked = LinkedIdentity.objects.filter(subject_digest=OuterRef("subject_digest"))
    # What is not applied yet keeps its content until it is.
    applied = WebhookEvent.objects.filter(pk__gt=newest - MOST_EVENTS).exclude(
        outcome="",
    )
    return applied.exclude(subject="").filter(~Exists(linked))


def _unread() -> Rows:
    """Until the next re-fetch succeeds, or counts as failing.

    In two ranges of the index: between them are all whose grant is lost.
    """
    lost = ReauthorizationNeeded.code
    others = Q(last_error__gt="", last_error__lt=lost) | Q(last_error__gt=lost)
    return LinkedIdentity.objects.filter(others, refetch_failures=0)


SIGNS = (
    Sign(
        "due_rows",
        "re-fetches that are due for over 15 minutes",
        "Do re-fetches pause? Does upkeep run, and do workers take its messages? Is "
        "REFETCHES_PER_MINUTE enough?",
        lambda: _identities(refetch_due_at__lte=runs.late()),
        since="refetch_due_at",
    ),
    Sign(
        "refetches",
        f"re-fetches that failed {MANY_FAILURES} times in a row or more",
        "The log lines identity.refetch.failed have the error.",
        lambda: LinkedIdentity.objects.filter(refetch_failures__gte=MANY_FAILURES),
        by="last_error",
    ),
    Sign(
        "failing",
        "re-fetches that failed, and are tried again",
        "The log lines identity.refetch.failed have the error.",
        lambda: LinkedIdentity.objects.filter(
            refetch_failures__range=(1, MANY_FAILURES - 1),
        ),
        by="last_error",
        level=Severity.WARNING,
    ),
    Sign(
        "unread",
        "sign-ins of which something could not be read or proven",
        "The log lines identity.sign_in.unread have the error.",
        _unread,
        by="last_error",
        level=Severity.WARNING,
    ),
    Sign(
        "sign_ins",
        "sign-ins that failed lately",
        "The log lines identity.sign_in.failed have the error.",
        lambda: AuthorizationRequest.objects.filter(
            outcome__in=OF_SETTINGS,
            expires_at__gte=timezone.now(),
        ),
        by="outcome",
    ),
    Sign(
        "grants",
        "grants that were lost within a day",
        "The log lines identity.grant.lost have the reasons. Many at once: a restored backup, whose"
        " refresh tokens are spent (identity_refetch --pause), or two sites with one client.",
        lambda: TokenGrant.objects.filter(
            needs_reauthorization=True,
            access_expires_at__gte=ago(A_DAY),
        ),
        level=Severity.WARNING,
    ),
    Sign(
        "handlers",
        "events that wait for over 15 minutes",
        "Does upkeep run? The log lines identity.event.handler_failed name what fails.",
        lambda: WebhookEvent.objects.filter(next_attempt_at__lte=runs.late()),
        since="next_attempt_at",
    ),
    Sign(
        "events",
        "events that failed for good",
        "Mend the handler, then identity_replay.",
        # Without its content an event cannot be replayed.
        lambda: WebhookEvent.objects.filter(outcome=EventOutcome.FAILED).exclude(
            event_id="",
        ),
    ),
    Sign(
        "unapplied",
        "events that are not applied, and what they revoke is still open",
        "They are tried again. The log lines identity.event.failed have the error.",
        lambda: WebhookEvent.objects.filter(outcome="", received_at__lt=runs.late()),
        since="received_at",
    ),
    Sign(
        "nameless",
        "events of the last day that named nobody",
        "Add the member that has the person's id to EVENT_SUBJECT_PATHS: the log's WARNINGs name"
        " the members. What people revoked or asked to delete is still here: the service got 422.",
        lambda: WebhookEvent.objects.filter(
            subject_digest="",
            event_type__in=KINDS,
            received_at__gte=ago(A_DAY),
        ),
    ),
    Sign(
        "unlinked",
        "events with content of somebody who is not linked",
        "SQL or a data migration deleted the identity. identity_erase SUBJECT empties them.",
        _unlinked,
    ),
    Sign(
        "environment",
        "identities of the other environment, which no event reaches",
        "Is ENVIRONMENT right, and the database this site's own? Else identity_erase --links-of, "
        "with the environment.",
        lambda: of_environment(other=True),
    ),
    Sign(
        "erasures",
        "erasures that are not done",
        "The receipt in the admin has the error, and a button that tries again.",
        lambda: _receipts(erased_at=None, requested_at__lt=runs.late()),
        since="requested_at",
    ),
    Sign(
        "accounts",
        "accounts that the site deleted before erase_user ran",
        "Look for what erase_user would have erased in your own tables.",
        lambda: _done(account_was_gone=True),
        level=Severity.WARNING,
    ),
)
