"""A trace tells how far ``verify`` came, and can never disagree with it."""

from __future__ import annotations

import pytest

from django_identity.credentials import RejectionReason
from django_identity.credentials.reasons import CHECKS
from django_identity.credentials.trace import Outcome, Trace, trace
from django_identity.exceptions import CredentialRejected
from tests.credentials.issuer import (
    CLAIMS,
    DISCLOSURES,
    OTHER_KEY,
    SUBJECT,
    check,
    credential,
    disclose,
    header,
    join,
    listing,
    token,
)

R = RejectionReason
VALID = credential()
BAD = {
    R.FORMAT_CHARSET: VALID + " ",
    R.FORMAT_TILDE: VALID[:-1],
    R.HEADER_ALG: join(token(header(alg="none")), DISCLOSURES),
    R.KEY: join(token(header(kid="another")), DISCLOSURES),
    R.SIGNATURE: join(token(key=OTHER_KEY), DISCLOSURES),
    R.PAYLOAD_AUD: credential(aud="client-2"),
    R.PAYLOAD_EXPIRED: credential(exp=1),
    R.DISCLOSURE_UNLISTED: join(token(), [disclose("age_over_21", True)]),
    R.DISCLOSURE_NESTED: listing(disclose("address", {"_sd": []})),
    R.DISCLOSURE_COLLISION: listing(disclose("name", 1), disclose("name", 2)),
}


def outcomes(found: Trace) -> list[Outcome]:
    return [step.outcome for step in found.steps]


def test_an_accepted_credential_passes_every_check():
    """All checks in their order, and then everything that was proven."""
    found = trace(lambda: check(VALID))
    assert [step.title for step in found.steps] == [made.title for made in CHECKS]
    assert set(outcomes(found)) == {Outcome.PASSED}
    assert found.reason is None
    assert found.proven == check(VALID)
    text = "\n".join(found.lines())
    assert f'subject: "{SUBJECT}"' in text
    assert all(f'claim "{name}": ' in text for name in CLAIMS)


@pytest.mark.parametrize("reason", R)
def test_every_reason_ends_the_trace_at_its_check(reason):
    """Every check above the reason's was passed, none below it was made."""

    def rejecting():
        raise CredentialRejected(reason)

    found = trace(rejecting)
    [position] = [i for i, made in enumerate(CHECKS) if reason in made.reasons]
    assert outcomes(found)[:position] == [Outcome.PASSED] * position
    assert outcomes(found)[position] is Outcome.FAILED
    assert set(outcomes(found)[position + 1 :]) <= {Outcome.NOT_MADE}
    assert found.lines()[-1] == f"rejected: {reason}: {reason.explanation}"


@pytest.mark.parametrize(("reason", "text"), BAD.items(), ids=list(BAD))
def test_the_reason_is_the_verifiers(reason, text):
    """What ``verify`` rejects, the trace rejects for the same reason, and quotes nothing of it."""
    found = trace(lambda: check(text))
    assert (found.reason, found.proven) == (reason, None)
    shown = "\n".join(found.lines())
    parts = [part for piece in text.split("~") for part in piece.split(".")]
    assert not any(part in shown for part in parts if len(part) > 10)


def test_what_the_issuer_wrote_reaches_no_terminal_raw():
    """Control characters of a name or a value are escaped."""
    text = listing(disclose("na\x1b[31mme", "va\x1b]0;title\x07lue\u202e"))
    shown = "\n".join(trace(lambda: check(text)).lines())
    assert shown.isascii()
    assert shown.replace("\n", "").isprintable()


def test_an_accepted_credential_is_not_printed_either():
    """Neither the signed token nor a disclosure is in the trace."""
    shown = "\n".join(trace(lambda: check(VALID)).lines())
    assert not any(part in shown for part in VALID.rstrip("~").split("~"))


def test_every_reason_is_explained():
    """An operator reads a sentence for each reason."""
    assert all(reason.explanation for reason in R)
    assert len({reason.explanation for reason in R}) == len(R)
