"""The strict JSON reader: one way to read each text, however it is asked."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_identity import strict_json
from tests.credentials.json_texts import NOT_STRICT_VALUES
from tests.example_counts import examples

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS
VALUES = st.recursive(
    SCALARS | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=20,
)
# Pieces that make sense, or nonsense, only together.
PIECES = st.sampled_from(
    [
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b"1",
        b"\x1e",
        b" ",
        b"\\u",
        b"d800",
        b"\n",
        b'"a"',
        b'["s","n",1]',
        b"\xc3",
        b"\xa9",
        b'{"a":1}',
        b"NaN",
        b"1e999",
        b"\\",
        b"\0",
    ],
)
WRITTEN = VALUES.map(lambda value: json.dumps(value).encode())
TEXTS = st.lists(PIECES, max_size=8).map(b"".join) | WRITTEN


@examples(few=50, many=2_000)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_strict_texts_are_read_like_any_reader_reads_them(value, indent, ascii_only):
    """What is strict JSON is read exactly: values, types, and the order of members."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert repr(strict_json.read(text)) == repr(json.loads(text))


@examples(few=50, many=2_000)
@given(st.binary() | TEXTS)
def test_nothing_else_is_raised(octets):
    """Any bytes are read or are NotStrictJSON, which is chained to nothing that holds them."""
    context = None
    try:
        strict_json.read(octets)
    except strict_json.NotStrictJSON as error:
        context = error.__context__
    assert context is None


@pytest.mark.parametrize("text", NOT_STRICT_VALUES.values(), ids=NOT_STRICT_VALUES)
def test_what_is_not_strict(text):
    """Rows 7 to 9: each of these is refused, as a whole text and inside of one."""
    for whole in (text, b"[" + text + b"]", b'{"a":[' + text + b"]}"):
        with pytest.raises(strict_json.NotStrictJSON):
            strict_json.read(whole)


def test_a_caller_may_ask_for_fewer_levels():
    """A bracket inside a text is no level."""
    text = b'{"a":[["[[[["]]}'
    assert strict_json.read(text, deepest=3) == {"a": [["[[[["]]}
    with pytest.raises(strict_json.NotStrictJSON, match="nested too deep"):
        strict_json.read(text, deepest=2)
