"""Events, tokens, re-fetches, and the end of a consent or of a person's data."""

from tests.sabotage.sabotage import Room, Sabotage

EVENTS = Room(
    "events",
    tests=(
        "tests/service/test_webhooks.py",
        "tests/views/test_webhook.py",
        "tests/lifecycle/test_events.py",
    ),
    sabotages=(
        Sabotage(
            "last-secret-alone",
            "service/webhooks.py",
            "fits |= hmac.compare_digest",
            "fits = hmac.compare_digest",
            "While secrets rotate, each of them signs.",
        ),
        Sabotage(
            "repeat-tells-the-former-link",
            "models/querysets.py",
            'update_fields=["event_digest"],',
            'update_fields=["event_digest", "subject", "event_id", "payload"],',
            "A repeat after a new link stores nothing of the former link.",
        ),
        Sabotage(
            "event-from-the-future",
            "models/events.py",
            "return min(self.occurred_at, self.received_at)",
            "return self.occurred_at",
            "An event from the future counts as received.",
        ),
        Sabotage(
            "large-body-is-cut",
            "views/webhook.py",
            "stream.read(LARGEST_BODY + 1)",
            "stream.read(LARGEST_BODY)",
            "A body over 256 KB is refused as too large.",
        ),
        Sabotage(
            "another-claim-is-revoked",
            "lifecycle/said/effects.py",
            "rows = rows.filter(claim_type=named.claim_type)",
            "rows = rows.exclude(claim_type=named.claim_type)",
            "claim.revoked revokes the claim that it names.",
        ),
    ),
)

TOKENS = Room(
    "tokens",
    tests=("tests/lifecycle/test_tokens.py",),
    sabotages=(
        Sabotage(
            "late-answer-is-stored",
            "lifecycle/said/grants.py",
            "filter(pk=grant.pk, generation=grant.generation)",
            "filter(pk=grant.pk)",
            "A refresh stores nothing over newer tokens.",
        ),
        Sabotage(
            "two-take-the-lease",
            "lifecycle/said/grants.py",
            "lease_until=grant.lease_until, retry_at=grant.retry_at",
            "retry_at=grant.retry_at",
            "Of two workers one takes the lease.",
        ),
        Sabotage(
            "rejected-token-again",
            "lifecycle/said/tokens.py",
            "if token == self.rejected:",
            "if token is self.rejected:",
            "A token that the service refused is not used again.",
        ),
        Sabotage(
            "refresh-in-a-transaction",
            "lifecycle/said/tokens.py",
            "database.require_no_transaction(NOT_IN_A_TRANSACTION)",
            "database.connection()",
            "No refresh is sent inside a transaction, whose rollback would lose the tokens.",
        ),
    ),
)

REFETCH = Room(
    "re-fetch",
    tests=("tests/lifecycle/test_upkeep.py", "tests/lifecycle/test_claims.py"),
    sabotages=(
        Sabotage(
            "taken-rows-stay-due",
            "lifecycle/said/due.py",
            "update(refetch_due_at=now + TAKEN_FOR)",
            "update(refetch_due_at=now)",
            "A row that a worker has taken is not due for another one.",
        ),
        Sabotage(
            "calls-without-a-pause",
            "lifecycle/said/due.py",
            "return max(min(dates), now + SOONEST)",
            "return min(dates)",
            "An answer that ends at once causes no calls without a pause.",
        ),
        Sabotage(
            "overtaken-answer-is-stored",
            "models/querysets.py",
            "self.filter(pk=identity.pk, version=identity.version)",
            "self.filter(pk=identity.pk)",
            "An answer that was asked for before a change is discarded.",
        ),
    ),
)

LEAVING = Room(
    "leaving",
    tests=(
        "tests/lifecycle/test_erasure.py",
        "tests/lifecycle/test_forgetting.py",
        "tests/lifecycle/test_moves.py",
        "tests/lifecycle/test_events.py",
    ),
    sabotages=(
        Sabotage(
            "moved-account-is-erased",
            "models/identity.py",
            "return self.made_account == database.key_text(self.user_id)",
            'return self.made_account != ""',
            "The service's deletion never erases an account that the identity did not make.",
        ),
        Sabotage(
            "stale-row-is-saved",
            "models/identity.py",
            "if force_insert or into != database.alias() or self.pk is None:",
            "if into:",
            "No instance that was read before a revocation brings the consent back.",
        ),
        Sabotage(
            "tokens-outlive-the-consent",
            "lifecycle/ground/withdrawal.py",
            "    grants._raw_delete(database.alias())",
            "    grants.all()",
            "The end of the consent deletes the tokens.",
        ),
        Sabotage(
            "copy-empties-events-here",
            "lifecycle/ground/withdrawal.py",
            "if using != database.alias():",
            "if not using:",
            "The deletion of a copy in another database empties nothing here.",
        ),
        Sabotage(
            "events-outlive-the-link",
            "lifecycle/ground/withdrawal.py",
            "    retention.empty_events(retention.with_content(identity.subject_digest))\n",
            "",
            "An identity that goes takes the content of its events with it.",
        ),
        Sabotage(
            "erasure-takes-staff",
            "policy.py",
            "return not made_for_identity or is_privileged(user)",
            "return not made_for_identity",
            "By default an erasure of the identity leaves an account of staff.",
        ),
        Sabotage(
            "completed-sign-in-stays",
            "lifecycle/leaving/dossier.py",
            "_is_started_by(person) | Q(completed_by_id__in=[person.user_id])",
            "_is_started_by(person)",
            "An erasure takes the sign-ins that led into the account.",
        ),
    ),
)
