"""Encryption at rest."""

import pytest

from django_identity import vault
from django_identity.exceptions import SealedValueUnreadable
from django_identity.secrets import Secret

KEYS = (Secret("the first key of the ring"), Secret("an older key of the ring"))
CONTEXT = ("test", "a subject", "access_token")


@pytest.mark.parametrize(
    "text",
    ["", "token", "ünïcödé 🙂", "x" * 20_000, "\n", '["a"]\n', "a line\nand another"],
)
def test_what_is_sealed_opens_again(text):
    """Any text comes back as it was: only the first line of what is sealed is the context."""
    sealed = vault.seal(Secret(text), keys=KEYS, context=CONTEXT)
    assert vault.unseal(sealed, keys=KEYS, context=CONTEXT).reveal() == text


def test_the_text_is_not_in_what_is_sealed_and_never_sealed_alike():
    """Two seals of one text differ, and neither shows it."""
    one, two = (
        vault.seal(Secret("a-token"), keys=KEYS, context=CONTEXT) for _ in range(2)
    )
    assert one != two
    assert "a-token" not in one


def test_an_older_key_still_opens():
    """A key moves down the ring and goes on opening what it sealed."""
    sealed = vault.seal(Secret("token"), keys=KEYS[1:], context=CONTEXT)
    assert vault.unseal(sealed, keys=KEYS, context=CONTEXT).reveal() == "token"
    with pytest.raises(SealedValueUnreadable, match="no key opens it"):
        vault.unseal(sealed, keys=KEYS[:1], context=CONTEXT)


OTHERS = [("live", *CONTEXT[1:]), (*CONTEXT[:1], "other", *CONTEXT[2:]),
    (*CONTEXT[:2], "refresh_token"), CONTEXT[:2], (),
    ("testa", " subject", *CONTEXT[2:])]  # fmt: skip


@pytest.mark.parametrize("moved", OTHERS, ids=str)
def test_a_value_moved_elsewhere_does_not_open(moved):
    """Environment, subject and column are all bound to the text, each for itself.

    No frame of the traceback holds it, nor the keys.
    """
    sealed = vault.seal(Secret("a-token"), keys=KEYS, context=CONTEXT)
    with pytest.raises(SealedValueUnreadable, match="another row or column") as caught:
        vault.unseal(sealed, keys=KEYS, context=moved)
    shown = "".join(repr(entry.locals) for entry in caught.traceback[1:])
    assert "sealed" in shown
    assert not any(
        text in shown for text in ("a-token", *(key.reveal() for key in KEYS))
    )


def test_any_changed_character_keeps_it_closed():
    """Every character of what is stored counts, but for the padding's spare bits."""
    sealed = vault.seal(Secret("token"), keys=KEYS, context=CONTEXT)
    for position in range(len(sealed.rstrip("=")) - 1):
        other = "A" if sealed[position] != "A" else "B"
        with pytest.raises(SealedValueUnreadable):
            vault.unseal(
                sealed[:position] + other + sealed[position + 1 :],
                keys=KEYS,
                context=CONTEXT,
            )


@pytest.mark.parametrize(
    "stored", ["", "plain text", "gAAAAA", "\U0001f642", "not base64!", "\0"]
)
def test_what_was_never_sealed_does_not_open(stored):
    """A value that is not sealed at all is an error of its own, never a crash."""
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(stored, keys=KEYS, context=CONTEXT)
