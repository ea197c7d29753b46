"""A secret is not text: what would print it raises."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

import pytest

from django_identity.secrets import Secret

TEXT = "what-nobody-may-see"


@dataclass
class Holder:
    secret: Secret


@pytest.mark.parametrize(
    "use",
    [
        str, "{}".format, "{:>9}".format, "%s".__mod__, lambda secret: f"{secret}", "".join,
        lambda secret: "a" + secret, lambda secret: "-".join([secret]), bytes, len, iter,
        json.dumps, lambda secret: urlencode({"key": secret}), pickle.dumps, copy.copy,
        copy.deepcopy, lambda secret: asdict(Holder(secret)),
    ],
    ids=[
        "str", "format", "format with a width", "%s", "f-string", "join of a secret", "plus",
        "join of a list", "bytes", "len", "iter", "json", "urlencode", "pickle", "copy",
        "deepcopy", "asdict",
    ],
)  # fmt: skip
def test_no_use_but_reveal(use):
    """A form, a header, a log line or a copy fails loudly, instead of sending a mask."""
    with pytest.raises(TypeError) as raised:
        use(Secret(TEXT))
    assert TEXT not in str(raised.value)
    assert Secret(TEXT).reveal() == TEXT


def test_a_debugger_shows_a_mask():
    assert repr(Holder(Secret(TEXT))) == "Holder(secret=Secret(***))"
    assert f"{Secret(TEXT)!r}" == "Secret(***)"


def test_two_of_one_text_are_equal():
    """And a secret never equals its text."""
    assert Secret(TEXT) == Secret(TEXT)
    assert len({Secret(TEXT), Secret(TEXT)}) == 1
    assert Secret(TEXT) != Secret("other")
    assert Secret("ü") != "ü"
