"""Credentials and keys, stored claims, secrets."""

from tests.sabotage.sabotage import room

PROOF = room(
    "proof",
    tests=(
        "tests/credentials/test_sdjwt.py",
        "tests/credentials/test_keys.py",
        "tests/credentials/test_identity_tokens.py",
        "tests/lifecycle/test_key_sets.py",
    ),
    changes="""
any-environment: A credential of the test environment proves nothing at a live site.
credentials/sdjwt.py
-"aud": audience, "environment": environment}
+"aud": audience}

leeway-for-expiry: An expired credential has no leeway.
credentials/payload.py
-if now >= exp:
+if now >= exp + leeway:

unlisted-disclosures: A disclosure whose digest is not signed rejects the credential.
credentials/sdjwt.py
-require_listed(disclosures, listed_digests(payload))
+listed_digests(payload)

two-keys-of-one-name: Of two keys with one kid none verifies anything.
credentials/keys.py
-if key is not None and times[jwk["kid"]] == 1:
+if key is not None:

id-token-for-several: An ID token for several applications names nobody.
credentials/identity_tokens.py
-return aud in (audience, [audience])
+return audience in aud

flood-of-key-fetches: Unknown kids cause at most two fetches of the key set in 30 seconds.
lifecycle/said/key_sets.py
-began - origin.tries[0] < COOLDOWN
+began - origin.tries[0] > COOLDOWN
""",
)

CLAIMS = room(
    "claims",
    tests=(
        "tests/lifecycle/test_claims.py",
        "tests/lifecycle/test_arrivals.py",
    ),
    changes="""
older-credential-counts: A credential that is older than the stored one replaces nothing.
lifecycle/said/claims.py
-return verified.issued_at >= newest_at
+return verified.issued_at is not None

last-entry-decides: A claim that is listed twice is revoked if either entry is.
lifecycle/said/claims.py
-first.revoked_at = revoked_at
+row.revoked_at = revoked_at

claim-outlives-credential: A claim is valid until the end of its credential at the latest.
lifecycle/said/claims.py
-row.valid_until = _earliest(row.expires_at, clocks.end_of(proof))
+row.valid_until = row.expires_at or clocks.end_of(proof)

revoked-claim-returns: A revoked claim counts again only by a credential of after its revocation.
lifecycle/said/claims.py
-if clocks.is_younger(issued_at, before.revoked_at):
+if issued_at is not None:
""",
)

SECRETS = room(
    "secrets",
    tests=(
        "tests/test_secrets.py",
        "tests/test_logs.py",
        "tests/lifecycle/test_sealing.py",
        "tests/service/test_http.py",
    ),
    changes="""
context-is-not-compared: A sealed value that was moved to another row does not open.
vault.py
-if opened.context != json.dumps(context):
+if not opened.context:

redirects-are-followed: No redirect leads a token or a code to another address.
service/http.py
-follow_redirects=False
+follow_redirects=True

message-is-logged: A log line has the class of a foreign error and never its message.
logs.py
-error=type(error).__name__
+error=str(error)
""",
)
