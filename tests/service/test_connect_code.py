"""Connect codes as people hand them in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_identity.exceptions import FlowError
from django_identity.service.connect import code_in
from tests.example_counts import examples

CODE = "CNX-AB12-CD34"


@pytest.mark.parametrize(
    "pasted",
    [
        "CNX-AB12-CD34", "cnx-ab12-cd34", "  cnx ab12 cd34\n", "cnx ab12cd34", "CNXAB12CD34",
        "CNX-AB12CD34", "CNX\u2013AB12\u2013CD34",
        "CNX\u2014AB12\u2212CD34", "CNX\u2010AB12\u2011CD34", "CNX_AB12_CD34", "CNX - AB12 - CD34",
        "CNX\u00a0AB12\u202fCD34", "CNX-AB12-\u200bCD34\ufeff", "CNX-AB\u00ad12-CD34",
        "\u2068CNX-\u2066AB12\u2069-CD34\u2069",
        "\uff23\uff2e\uff38\uff0d\uff21\uff22\uff11\uff12\uff0d\uff23\uff24\uff13\uff14",
        "“CNX-AB12-CD34”", "(CNX-AB12-CD34).",
        "CNX-AB\u0661\u0662-CD\u0663\u0664", "cnx ab\u06f1\u06f2 cd\u06f3\u06f4",
        "CNX-AB\u0967\u0968-CD\u0969\u096a", "CNX-AB\u09e7\u09e8-CD\u09e9\u09ea",
        "CNX-AB\uff11\uff12-CD\uff13\uff14", "CNX-AB1\u0662-CD\u06634",
        "Hi! My code is cnx-ab12-cd34, it works for ten minutes.",
        "Your CNX code from the service: CNX-AB12-CD34\nIt works once.",
        "my code is cnx ab12 cd34, thanks", "CNX-AB12-CD34 (again: cnx ab12 cd34)",
        "CNX-AB12-CD34 CNX-AB12-CD34",
    ],
)  # fmt: skip
def test_a_code_is_found_however_it_was_pasted(pasted):
    """Case, spaces, missing hyphens, look-alike dashes and a sentence around it do no harm."""
    assert code_in(pasted) == CODE


@pytest.mark.parametrize(
    "pasted", ["cnx-abcd-efgh", "cnxabcdefgh", "my cnx code from them is cnx-abcd-efgh"]
)
def test_a_code_of_letters_alone_is_found(pasted):
    """Codes need hold no digit."""
    assert code_in(pasted) == "CNX-ABCD-EFGH"


@pytest.mark.parametrize(
    "pasted",
    [
        "", " ", "CNX", "CNX-AB12-CD3", "CNX-AB12-CD345", "CNX-AB12-CD34-EF56", "XCNX-AB12-CD34",
        "CNX-AB12-CD3\u00e9", "CNX-AB12-CD34\u0661", "CNX-AB12-CD3\u2460\u0661",
        "CNX-AB12-CD3\u4e00", "\u0421NX-AB12-CD34",
        "CNX-AB12-CD34 or CNX-EF56-GH78", "my cnx code from them is cnx abcd efgh",
        "my cnx code from them is cnx ab12 cd34", "CNX-AB.2-CD34", "CNX-AB12\0-CD34", "a" * 2000,
        "CNX-AB12-CD34" + " " * 1000,
        "CNX-" * 250, "CNX -" * 200, "C" * 1000, "\ufdfa" * 1000,
    ],
)  # fmt: skip
def test_no_code_or_two_is_no_guess(pasted):
    """A guess would spend a code, so doubt is refused; the error does not quote it."""
    with pytest.raises(FlowError) as refused:
        code_in(pasted)
    assert len(pasted) < 5 or pasted not in repr(refused.value) + refused.value.detail


@examples(few=30, many=5_000)
@given(st.text(max_size=300))
def test_any_text_ends_in_a_code_or_a_refusal(pasted):
    """Whatever is pasted, the answer has the shape of the spec, or there is none."""
    try:
        code = code_in(pasted)
    except FlowError:
        return
    assert re.fullmatch(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", code)
