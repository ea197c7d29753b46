"""What an issuer may sign that is refused all the same: the payload, and the disclosures."""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

from django_identity.credentials import RejectionReason
from tests.credentials.issuer import (
    ABSENT,
    AUDIENCE,
    CLAIMS,
    DISCLOSURES,
    EPOCH_NOW,
    ISSUER,
    ORDER,
    SUBJECT,
    b64,
    credential,
    digest,
    disclose,
    encode,
    header,
    listing,
    payload,
    unb64,
    written,
)
from tests.credentials.json_texts import NOT_STRICT, NOT_STRICT_VALUES
from tests.credentials.vectors import (
    GOOD_R,
    GOOD_S,
    headed,
    pair,
    refused,
    with_signature,
)

R = RejectionReason
LISTED = payload()["_sd"]
PARTIES = ("iss", "aud", "environment", "sub")
OPEN = json.dumps(payload())[:-1] + ',"x":'
NO_DATES: list[Any] = [
    "1795262400", "", None, True, False, [EPOCH_NOW], {}, 253_402_300_800, 10**30, 1e300,
    -62_135_596_801, -1e300, 10**90,
]  # fmt: skip
NESTED: list[dict[str, Any]] = [
    {"address": {"_sd": [LISTED[0]]}}, {"address": {"_sd": []}}, {"a": [{"b": {"_sd": ["x"]}}]},
    {"a": {"_sd_alg": "sha-256"}}, {"nationalities": [{"...": LISTED[0]}]}, {"a": {"...": "x"}},
    {"...": "x"}, {"a": [[[{"_sd": None}]]]},
]  # fmt: skip


def member(rule: str, name: str, values: Iterable[Any], **asked: Any) -> Any:
    """Values of a member of the payload that are all refused, for the member's own reason."""
    reason = asked.pop("reason", None) or R(f"payload.{name.removeprefix('_')}")
    return refused(
        rule,
        reason,
        [credential(**{name: each}) for each in values],
        **asked,
    )


def escaped(extra: dict[str, Any]) -> str:
    text = json.dumps(payload(**extra)).replace('"..."', '"\\u002e.."')
    return text.replace('{"_sd', '{"\\u005fsd')


PAYLOAD = [
    refused("7-10 one object of strict JSON, 32 levels deep", R.PAYLOAD_JSON, [
        *(written(body=text) for text in NOT_STRICT.values() if len(text) <= 96 * 1024),
        written(body=OPEN + "[" * 15_000), written(body=OPEN + '{"a":' * 15_000),
        written(body=f"{OPEN}{'[' * 900}1{']' * 900}}}"),
        written(body=OPEN + '{"a":' * 900 + "1" + "}" * 901),
    ]),
    refused("2 a payload beyond the limit is not read", R.LIMITS, [
        written(body=text) for text in NOT_STRICT.values() if len(text) > 96 * 1024
    ]),
    *(refused(f"25 a disclosure does not supply {name}", R(f"payload.{name}"), [
        listing(disclose(name, payload()[name]), **{name: ABSENT}),
    ]) for name in (*PARTIES, "exp")),
    *(member(f"25 {name} is a string", name, [None, True, 1, [], {}, "", ABSENT])
      for name in PARTIES),
    member("26 the issuer is the API origin exactly", "iss", [
        ISSUER + "/", ISSUER + ":443", ISSUER.upper(), ISSUER[:-1], ISSUER + ".evil",
        "https://", ISSUER.replace("https", "http"), " " + ISSUER, [ISSUER], {"value": ISSUER},
    ]),
    member("27 the audience is our client id exactly, never a list", "aud", [
        [AUDIENCE], [AUDIENCE, "other"], "client", "CLIENT-1", "client-1 ", "client-10",
    ]),
    member("28 the environment is the application's exactly", "environment", [
        "live", "TEST", "tes", "test ", ["test"], {"test": 1},
    ]),
    member("28 and the other way round", "environment", ["test"], environment="live"),
    *(member(f"29 the subject is text that can be stored, asked for {subject}", "sub", [
        [SUBJECT], {SUBJECT: 1}, 1.5, [["x"]], "a\0b", "\0", " ", "\t",
    ], subject=subject) for subject in (None, SUBJECT)),
    member("29 a lone surrogate is refused with the payload", "sub", ["\ud800"],
           reason=R.PAYLOAD_JSON),
    *(member(f"29 another user's credential opens nothing ({subject!r})", "sub", [SUBJECT],
             subject=subject)
      for subject in ("", "somebody", SUBJECT.upper(), SUBJECT + " ", SUBJECT[:-1])),
    member("30 an expiry is a number, and a date", "exp", [*NO_DATES, ABSENT]),
    member("30 at its expiry it is expired, and no leeway helps", "exp", [
        EPOCH_NOW - age for age in (0, 0.5, 1, 86_400, EPOCH_NOW, EPOCH_NOW + 62_135_596_800)
    ], leeway=3600, reason=R.PAYLOAD_EXPIRED),
    *(each for name in ("nbf", "iat") for each in (
        member(f"31 {name} is a number, and a date", name, NO_DATES),
        member(f"31 {name} is not in the future", name,
               [EPOCH_NOW + ahead for ahead in (0.5, 1, 29.5, 86_400)]),
        member(f"31 {name} is not beyond the leeway", name, [EPOCH_NOW + 30.5], leeway=30),
    )),
    member("32 the digests are a list of strings", "_sd", [
        " ".join(LISTED), LISTED[0], dict.fromkeys(LISTED, 1), None, True, 1, [*LISTED, 1],
        [*LISTED, None], [LISTED], [*LISTED, []],
    ]),
    refused("32 no digest is listed twice", R.PAYLOAD_SD_REPEAT, [
        credential(_sd=[*LISTED, repeated, "x", repeated], disclosures=DISCLOSURES[1:])
        for repeated in (LISTED[0], "decoy")
    ]),
    member("32 without digests nothing is listed", "_sd", [ABSENT, []],
           reason=R.DISCLOSURE_UNLISTED),
    member("33 SHA-256 by its registered name", "_sd_alg",
           ["SHA-256", "sha256", "sha-512", "sha-384", "", None, ["sha-256"]]),
    refused("34 digests and placeholders stand at the top level alone", R.PAYLOAD_NESTED, [
        *(credential(**extra) for extra in NESTED),
        *(written(body=escaped(extra)) for extra in NESTED),
    ]),
]  # fmt: skip

# A disclosure whose digest is written differently in the two alphabets.
ONE = next(
    text for n in range(99) if {*digest(text := disclose("a", 1, f"{n}"))} >= {"-", "_"}
)
HASH = hashlib.sha256(ONE.encode()).digest()
FOREIGN = disclose("age_over_21", True)
RESPACED = encode(json.dumps(json.loads(unb64(DISCLOSURES[1])), separators=(",", ":")))
BAD_VALUES = [
    encode(b'["salt","name",' + value + b"]") for value in NOT_STRICT_VALUES.values()
]
BAD_TEXTS = [
    b"[", b"]", b'["s","n",1', b'["s","n",1]]', b'["s","n",1]x', b'["s","n",NaN]', b"abc",
    b'["s","n",1],["t","m",2]', b'["s","n",1]\x1e["t","m",2]', b'["s\x1e","n",1]', b"\x1e",
    b'["s","n",1]\x1e', b'\x1e["s","n",1]', b'["s","n","\xff"]', b'["s","n","\\udc00"]',
    b'["\\ud800","n",1]', b'["s","\\ud800",1]', b'\xef\xbb\xbf["s","n",1]',
    b'["s","n",' + b"[" * 15_000, b'["s","n",' + b'{"a":' * 15_000,
]  # fmt: skip
HALVES = [(b'["s","n",', b"1]"), (b'["s","n",[1', b"2]]"), (b'["s","n","', b'"]')]
SHAPES: list[Any] = [
    [], ["s"], ["s", "n", 1, 2], "abc", {"0": "s", "1": "n", "2": 1}, {"a": 1, "b": 2}, None, True,
    3, 1.5, [1, "n", 1], [None, "n", 1], [["s"], "n", 1], ["s", 1, 1], ["s", None, 1],
    ["s", ["n"], 1], ["s", {"n": 1}, 1], {}, "ab",
]  # fmt: skip
IN_PAYLOAD = {**{name: payload()[name] for name in (*PARTIES, "exp", "iat")},
              "vct": "type", "nbf": 1, "extra": "signed"}  # fmt: skip
DEEP = json.loads("[" * 31 + "]" * 31)


def alone_and_beside(*texts: str) -> list[str]:
    return [
        sent for text in texts for sent in (listing(text), listing(*DISCLOSURES, text))
    ]


DISCLOSED = [
    refused("35 the digest is of the text as sent, compared exactly", R.DISCLOSURE_UNLISTED, [
        credential(disclosures=[ONE], _sd=[listed]) for listed in (
            HASH.hex(), base64.urlsafe_b64encode(HASH).decode(), base64.b64encode(HASH).decode(),
            base64.b64encode(HASH).decode().rstrip("="), b64(hashlib.sha256(unb64(ONE)).digest()),
            b64(hashlib.sha512(ONE.encode()).digest()),
            b64(hashlib.sha256(ONE.encode() + b"~").digest()), digest(ONE).swapcase(),
            digest(ONE) + " ", digest(ONE)[:-1], ONE, "",
        )
    ]),
    refused("36 one foreign disclosure refuses the whole", R.DISCLOSURE_UNLISTED, [
        *(credential(disclosures=[*DISCLOSURES[:place], FOREIGN, *DISCLOSURES[place:]])
          for place in range(5)),
        credential(disclosures=[FOREIGN]), credential(disclosures=[RESPACED]),
    ]),
    refused("37 no disclosure is sent twice", R.DISCLOSURE_REPEAT, [
        *(credential(disclosures=[*DISCLOSURES, repeated]) for repeated in DISCLOSURES),
        *(credential(disclosures=[repeated, repeated]) for repeated in DISCLOSURES),
    ]),
    refused("7-9 strict JSON, 32 levels deep; 38 one whole text each", R.DISCLOSURE_JSON, [
        *alone_and_beside(*(bad for bad in BAD_VALUES if len(bad) <= 128 * 1024)),
        *alone_and_beside(*map(encode, BAD_TEXTS)),
        *(listing(encode(text), *DISCLOSURES) for text in BAD_TEXTS),
        *(listing(encode(first), encode(second)) for first, second in HALVES),
        listing(disclose("a", [DEEP])),
    ]),
    refused("2 a disclosure beyond the limit is not read", R.LIMITS, [
        *alone_and_beside(*(bad for bad in BAD_VALUES if len(bad) > 128 * 1024)),
    ]),
    refused("38 an array of exactly salt, name and value", R.DISCLOSURE_SHAPE, [
        *alone_and_beside(*(encode(json.dumps(content)) for content in SHAPES)),
    ]),
    refused("38 an element of an array", R.DISCLOSURE_ARRAY_ELEMENT, [
        listing(encode(content))
        for content in (["s", "n"], ["s", {"_sd": []}], [1, 2], ["s", True])
    ]),
    refused("39 names that SD-JWT uses itself", R.DISCLOSURE_NAME, [
        *(listing(disclose(name, "x")) for name in ("_sd", "...", "_sd_alg")),
        *(listing(disclose(name, ["x"]), _sd_alg=ABSENT) for name in ("_sd", "...", "_sd_alg")),
    ]),
    refused("40 what decides on validity is not disclosed", R.DISCLOSURE_NAME, [
        listing(disclose(name, 2**33), iat=ABSENT)
        for name in ("nbf", "iat", "cnf", "vct", "status")
    ]),
    refused("39 a name that the payload has, or another disclosure", R.DISCLOSURE_COLLISION, [
        *(listing(disclose(name, "other"), **{name: value}) for name, value in IN_PAYLOAD.items()),
        listing(disclose("age_over_18", False, "a"), disclose("age_over_18", True, "b")),
        listing(disclose("age_over_18", False), encode('["s","age\\u005fover_18",true]')),
    ]),
    refused("41 no digests and placeholders inside a value", R.DISCLOSURE_NESTED, [
        *alone_and_beside(*(disclose("a", value) for value in (
            {"_sd": []}, {"_sd": ["x"]}, {"...": "x"}, [{"...": "x"}], {"a": [[{"b": {"_sd": 1}}]]},
            {"_sd_alg": "sha-256"},
        ))),
    ]),
]  # fmt: skip

VALUES: list[Any] = [
    True, False, None, 0, -1, 1.5, 1e100, 10**40, "", "😀 \u0000 é \U0010ffff", [], {},
    [1, [2, {"a": [None]}]], {"": {"b": [True, 1.5, "x"]}}, DEEP, "_sd", "...", ["_sd", "..."],
    {"a_sd": "_sd", "....": 1},
]  # fmt: skip
NAMES = ("", "é", "a b", "__proto__", "sd", "jti", "Iss", "claims")
MANY = {f"claim-{number}": {"n": [number]} for number in range(199)} | {
    "long": "x" * 32_768,
}
OTHERS = {"vct": "x", "cnf": {"jwk": {}}, "status": {}, "jti": "1", "age_over_21": True}
SPACED = encode(' \n[ "salt" ,\t"age_over_18" , true ]\r\n')
#: What is accepted, and the claims that it proves.
ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    (credential(), CLAIMS),
    *((written(head), CLAIMS) for head in (
        f" \t\r\n{json.dumps(header())} \n", json.dumps(header(), indent=4),
        json.dumps(header(), separators=(",", ":")),
    )),
    (headed(x={"y": [1]}, cty="json", b64=False), CLAIMS),
    # Nothing rests on the signature being unique.
    (with_signature(pair(GOOD_R, ORDER - GOOD_S)), CLAIMS),
    *((credential(exp=EPOCH_NOW + life), CLAIMS)
      for life in (0.001, 0.5, 1, 10**9, 253_402_300_799 - EPOCH_NOW)),
    *((credential(**{name: past}), CLAIMS) for name in ("nbf", "iat")
      for past in (EPOCH_NOW, EPOCH_NOW - 0.5, 0, -1, -62_135_596_800)),
    (credential(iat=ABSENT), CLAIMS),
    (credential(_sd_alg=ABSENT), CLAIMS),
    (credential(_sd=ABSENT, disclosures=[]), {}),
    (credential(_sd=[], disclosures=[]), {}),
    (credential(_sd=[digest("decoy"), "", "not a digest", "é", "😀", *LISTED]), CLAIMS),
    (credential(**OTHERS), CLAIMS),
    (written(body=OPEN + "[" * 31 + "]" * 31 + "}"), CLAIMS),
    *((written(body=f"\n {json.dumps(payload(), indent=indent)}\t\r\n"), CLAIMS)
      for indent in (None, 0, 4)),
    (credential(disclosures=[ONE], _sd=[digest(ONE)]), {"a": 1}),
    (listing(SPACED, DISCLOSURES[2]), {"age_over_18": True, "country_resident": "NG"}),
    *((listing(disclose("a", value)), {"a": value}) for value in VALUES),
    *((listing(disclose(name, 1)), {name: 1}) for name in NAMES),
    (listing(*(disclose(name, value) for name, value in MANY.items())), MANY),
]  # fmt: skip
