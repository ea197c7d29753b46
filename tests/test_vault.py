"""Encryption at rest."""

from __future__ import annotations

import pytest

from django_identity import vault
from django_identity.exceptions import SealedValueUnreadable

KEYS = ("the first key of the ring", "an older key of the ring")
CONTEXT = ("default", "test", "a subject", "access_token")


def test_what_is_sealed_opens_again() -> None:
    """Any text comes back as it was."""
    for text in ("", "token", "ünïcödé 🙂", "x" * 20_000):
        sealed = vault.seal(text, keys=KEYS, context=CONTEXT)
        assert vault.unseal(sealed, keys=KEYS, context=CONTEXT) == text


def test_the_text_is_not_in_what_is_sealed_and_never_sealed_alike() -> None:
    """Two seals of one text differ, and neither shows it."""
    one, two = (vault.seal("a-token", keys=KEYS, context=CONTEXT) for _ in range(2))
    assert one != two
    assert "a-token" not in one


def test_an_older_key_still_opens() -> None:
    """A key moves down the ring and goes on opening what it sealed."""
    sealed = vault.seal("token", keys=KEYS[1:], context=CONTEXT)
    assert vault.unseal(sealed, keys=KEYS, context=CONTEXT) == "token"
    assert not sealed.startswith(vault.prefix_of(KEYS[0]))
    assert sealed.startswith(vault.prefix_of(KEYS[1]))


@pytest.mark.parametrize("position", range(len(CONTEXT)))
def test_a_value_moved_elsewhere_does_not_open(position: int) -> None:
    """Application, environment, subject and column are all bound to the text."""
    sealed = vault.seal("token", keys=KEYS, context=CONTEXT)
    moved = tuple("other" if i == position else part for i, part in enumerate(CONTEXT))
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(sealed, keys=KEYS, context=moved)


def test_parts_of_the_context_do_not_run_together() -> None:
    """("ab", "c") is another context than ("a", "bc")."""
    sealed = vault.seal("token", keys=KEYS, context=("ab", "c"))
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(sealed, keys=KEYS, context=("a", "bc"))


def test_any_changed_character_keeps_it_closed() -> None:
    """Every character of what is stored counts."""
    sealed = vault.seal("token", keys=KEYS, context=CONTEXT)
    for position in range(len(sealed)):
        other = "A" if sealed[position] != "A" else "B"
        with pytest.raises(SealedValueUnreadable):
            vault.unseal(
                sealed[:position] + other + sealed[position + 1 :], keys=KEYS, context=CONTEXT
            )


@pytest.mark.parametrize(
    "stored", ["", "v1", "v1.", "v1..", "plain text", "v1.00000000.AAAA", "\0"]
)
def test_what_was_never_sealed_does_not_open(stored: str) -> None:
    """A value that is not sealed at all is an error of its own, never a crash."""
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(stored, keys=KEYS, context=CONTEXT)


@pytest.mark.parametrize("body", ["", "A", "AAAA", "A" * 24, "\U0001f642", "not base64!", "\0"])
def test_what_was_damaged_under_a_good_key_does_not_open(body: str) -> None:
    """Cut short, or no base64url at all: no crash, whatever stands behind the key's id."""
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(vault.prefix_of(KEYS[0]) + body, keys=KEYS, context=CONTEXT)
