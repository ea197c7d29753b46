"""Credentials and keys, stored claims, secrets."""

from tests.sabotage.sabotage import Room, Sabotage

PROOF = Room(
    "proof",
    tests=(
        "tests/credentials/test_sdjwt.py",
        "tests/credentials/test_keys.py",
        "tests/credentials/test_identity_tokens.py",
        "tests/lifecycle/test_key_sets.py",
    ),
    sabotages=(
        Sabotage(
            "any-environment",
            "credentials/sdjwt.py",
            '"aud": audience, "environment": environment}',
            '"aud": audience}',
            "A credential of the test environment proves nothing at a live site.",
        ),
        Sabotage(
            "leeway-for-expiry",
            "credentials/payload.py",
            "if now >= exp:",
            "if now >= exp + leeway:",
            "An expired credential has no leeway.",
        ),
        Sabotage(
            "unlisted-disclosures",
            "credentials/sdjwt.py",
            "require_listed(disclosures, listed_digests(payload))",
            "listed_digests(payload)",
            "A disclosure whose digest is not signed rejects the credential.",
        ),
        Sabotage(
            "two-keys-of-one-name",
            "credentials/keys.py",
            'if key is not None and times[jwk["kid"]] == 1:',
            "if key is not None:",
            "Of two keys with one kid none verifies anything.",
        ),
        Sabotage(
            "id-token-for-several",
            "credentials/identity_tokens.py",
            "return aud in (audience, [audience])",
            "return audience in aud",
            "An ID token for several applications names nobody.",
        ),
        Sabotage(
            "flood-of-key-fetches",
            "lifecycle/said/key_sets.py",
            "began - origin.tries[0] < COOLDOWN",
            "began - origin.tries[0] > COOLDOWN",
            "Unknown kids cause at most two fetches of the key set in 30 seconds.",
        ),
    ),
)

CLAIMS = Room(
    "claims",
    tests=(
        "tests/lifecycle/test_claims.py",
        "tests/lifecycle/test_arrivals.py",
    ),
    sabotages=(
        Sabotage(
            "older-credential-counts",
            "lifecycle/said/claims.py",
            "return verified.issued_at >= newest_at",
            "return verified.issued_at is not None",
            "A credential that is older than the stored one replaces nothing.",
        ),
        Sabotage(
            "last-entry-decides",
            "lifecycle/said/claims.py",
            "first.revoked_at = revoked_at",
            "row.revoked_at = revoked_at",
            "A claim that is listed twice is revoked if either entry is.",
        ),
        Sabotage(
            "claim-outlives-credential",
            "lifecycle/said/claims.py",
            "row.valid_until = _earliest(row.expires_at, clocks.end_of(proof))",
            "row.valid_until = row.expires_at or clocks.end_of(proof)",
            "A claim is valid until the end of its credential at the latest.",
        ),
        Sabotage(
            "revoked-claim-returns",
            "lifecycle/said/claims.py",
            "if clocks.is_younger(issued_at, before.revoked_at):",
            "if issued_at is not None:",
            "A revoked claim counts again only by a credential issued after its revocation.",
        ),
    ),
)

SECRETS = Room(
    "secrets",
    tests=(
        "tests/test_vault.py",
        "tests/test_secrets.py",
        "tests/test_logs.py",
        "tests/lifecycle/test_sealing.py",
        "tests/service/test_http.py",
    ),
    sabotages=(
        Sabotage(
            "context-is-not-compared",
            "vault.py",
            "if opened.context != json.dumps(context):",
            "if not opened.context:",
            "A sealed value that was moved to another row does not open.",
        ),
        Sabotage(
            "redirects-are-followed",
            "service/http.py",
            "follow_redirects=False",
            "follow_redirects=True",
            "No redirect leads a token or a code to another address.",
        ),
        Sabotage(
            "message-is-logged",
            "logs.py",
            "error=type(error).__name__",
            "error=str(error)",
            "A log line has the class of a foreign error and never its message.",
        ),
    ),
)
