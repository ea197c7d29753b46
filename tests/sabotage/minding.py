"""Events, tokens, re-fetches, and the end of a consent or of a person's data."""

from tests.sabotage.sabotage import room

EVENTS = room(
    "events",
    tests=(
        "tests/service/test_webhooks.py",
        "tests/views/test_webhook.py",
        "tests/lifecycle/test_events.py",
    ),
    changes="""
last-secret-alone: While secrets rotate, each of them signs.
service/webhooks.py
-fits |= hmac.compare_digest
+fits = hmac.compare_digest

repeat-tells-the-former-link: A repeat after a new link stores nothing of the former link.
models/querysets.py
-update_fields=["event_digest"],
+update_fields=["event_digest", "subject", "event_id", "payload"],

event-from-the-future: An event from the future counts as received.
models/events.py
-return min(self.occurred_at, self.received_at)
+return self.occurred_at

large-body-is-cut: A body over 256 KB is refused as too large.
views/webhook.py
-stream.read(LARGEST_BODY + 1)
+stream.read(LARGEST_BODY)

another-claim-is-revoked: claim.revoked revokes the claim that it names.
lifecycle/said/effects.py
-rows = rows.filter(claim_type=named.claim_type)
+rows = rows.exclude(claim_type=named.claim_type)
""",
)

TOKENS = room(
    "tokens",
    tests=("tests/lifecycle/test_tokens.py",),
    changes="""
late-answer-is-stored: A refresh stores nothing over newer tokens.
lifecycle/said/grants.py
-filter(pk=grant.pk, generation=grant.generation)
+filter(pk=grant.pk)

two-take-the-lease: Of two workers one takes the lease.
lifecycle/said/grants.py
-        lease_until=grant.lease_until,
-        retry_at=grant.retry_at,
+        retry_at=grant.retry_at,

rejected-token-again: A token that the service refused is not used again.
lifecycle/said/tokens.py
-if token == self.rejected:
+if token is self.rejected:

refresh-in-a-transaction: No refresh is sent in a transaction: a rollback would lose the tokens.
lifecycle/said/tokens.py
-database.require_no_transaction(NOT_IN_A_TRANSACTION)
+database.connection()
""",
)

REFETCH = room(
    "re-fetch",
    tests=(
        "tests/lifecycle/test_upkeep.py",
        "tests/lifecycle/test_claims.py",
    ),
    changes="""
taken-rows-stay-due: A row that a worker has taken is not due for another one.
lifecycle/said/due.py
-update(refetch_due_at=now + TAKEN_FOR)
+update(refetch_due_at=now)

calls-without-a-pause: An answer that ends at once causes no calls without a pause.
lifecycle/said/due.py
-return max(min(dates), now + SOONEST)
+return min(dates)

overtaken-answer-is-stored: An answer that was asked for before a change is discarded.
models/querysets.py
-self.filter(pk=identity.pk, version=identity.version)
+self.filter(pk=identity.pk)
""",
)

LEAVING = room(
    "leaving",
    tests=(
        "tests/lifecycle/test_erasure.py",
        "tests/lifecycle/test_forgetting.py",
        "tests/lifecycle/test_moves.py",
        "tests/lifecycle/test_events.py",
    ),
    changes="""
moved-account-is-erased: The service's deletion erases no account that the identity did not make.
models/identity.py
-return self.made_account == database.key_text(self.user_id)
+return self.made_account != ""

stale-row-is-saved: No instance that was read before a revocation brings the consent back.
models/identity.py
-if force_insert or into != database.alias() or self.pk is None:
+if into:

tokens-outlive-the-consent: The end of the consent deletes the tokens.
lifecycle/ground/withdrawal.py
-    grants._raw_delete(database.alias())
+    grants.all()

copy-empties-events-here: The deletion of a copy in another database empties nothing here.
lifecycle/ground/withdrawal.py
-if using != database.alias():
+if not using:

events-outlive-the-link: An identity that goes takes the content of its events with it.
lifecycle/ground/withdrawal.py
-    retention.empty_events(retention.with_content(identity.subject_digest))

erasure-takes-staff: By default an erasure of the identity leaves an account of staff.
policy/__init__.py
-return not made_for_identity or is_privileged(user)
+return not made_for_identity

completed-sign-in-stays: An erasure takes the sign-ins that led into the account.
lifecycle/leaving/dossier.py
-_is_started_by(person) | Q(completed_by_id__in=[person.user_id])
+_is_started_by(person)
""",
)
