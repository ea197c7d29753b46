"""A secret is not text: what would print it raises. At rest it is sealed."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

import pytest

from django_identity import vault
from django_identity.exceptions import SealedValueUnreadable
from django_identity.secrets import Secret

TEXT = "what-nobody-may-see"


@dataclass
class Holder:
    secret: Secret


USES = {
    "str": str,
    "format": "{}".format,
    "format with a width": "{:>9}".format,
    "%s": "%s".__mod__,
    "f-string": lambda secret: f"{secret}",
    "join of a secret": "".join,
    "plus": lambda secret: "a" + secret,
    "join of a list": lambda secret: "-".join([secret]),
    "bytes": bytes,
    "len": len,
    "iter": iter,
    "json": json.dumps,
    "pickle": pickle.dumps,
    "urlencode": lambda secret: urlencode({"key": secret}),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "asdict": lambda secret: asdict(Holder(secret)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_no_use_but_reveal(use):
    """A form, a header, a log line or a copy fails loudly, instead of sending a mask."""
    with pytest.raises(TypeError) as raised:
        use(Secret(TEXT))
    assert TEXT not in str(raised.value)
    assert Secret(TEXT).reveal() == TEXT


def test_a_debugger_shows_a_mask():
    assert repr(Holder(Secret(TEXT))) == "Holder(secret=Secret(***))"


def test_two_of_one_text_are_equal():
    """And a secret never equals its text."""
    assert Secret(TEXT) == Secret(TEXT)
    assert len({Secret(TEXT), Secret(TEXT)}) == 1
    assert Secret(TEXT) != Secret("other")
    assert Secret("ü") != "ü"


# Sealed


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
    one = vault.seal(Secret("a-token"), keys=KEYS, context=CONTEXT)
    two = vault.seal(Secret("a-token"), keys=KEYS, context=CONTEXT)
    assert one != two
    assert "a-token" not in one


def test_an_older_key_still_opens():
    sealed = vault.seal(Secret("token"), keys=KEYS[1:], context=CONTEXT)
    assert vault.unseal(sealed, keys=KEYS, context=CONTEXT).reveal() == "token"
    with pytest.raises(SealedValueUnreadable, match="no key opens it"):
        vault.unseal(sealed, keys=KEYS[:1], context=CONTEXT)


ELSEWHERE = [
    ("live", "a subject", "access_token"),
    ("test", "other", "access_token"),
    ("test", "a subject", "refresh_token"),
    ("test", "a subject"),
    (),
    ("testa", " subject", "access_token"),
]


@pytest.mark.parametrize("moved", ELSEWHERE, ids=str)
def test_a_value_moved_elsewhere_does_not_open(moved):
    """Environment, subject and column are all bound to the text, each for itself.

    No frame of the traceback holds it, nor the keys.
    """
    sealed = vault.seal(Secret("a-token"), keys=KEYS, context=CONTEXT)
    with pytest.raises(SealedValueUnreadable, match="another row or column") as caught:
        vault.unseal(sealed, keys=KEYS, context=moved)
    shown = "".join(repr(entry.locals) for entry in caught.traceback[1:])
    assert "sealed" in shown
    for text in ("a-token", *(key.reveal() for key in KEYS)):
        assert text not in shown


def test_any_changed_character_keeps_it_closed():
    """Every character of what is stored counts, but for the padding's spare bits."""
    sealed = vault.seal(Secret("token"), keys=KEYS, context=CONTEXT)
    for place in range(len(sealed.rstrip("=")) - 1):
        other = "A" if sealed[place] != "A" else "B"
        bent = sealed[:place] + other + sealed[place + 1 :]
        with pytest.raises(SealedValueUnreadable):
            vault.unseal(bent, keys=KEYS, context=CONTEXT)


@pytest.mark.parametrize(
    "stored",
    ["", "plain text", "gAAAAA", "\U0001f642", "not base64!", "\0"],
)
def test_what_was_never_sealed_does_not_open(stored):
    with pytest.raises(SealedValueUnreadable):
        vault.unseal(stored, keys=KEYS, context=CONTEXT)
