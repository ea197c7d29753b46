"""Texts that are not strict JSON, or not an object, each in its own way."""

OBJECT = '{"alg":"ES256","typ":"dc+sd-jwt","kid":"key-1"}'

NOT_STRICT_VALUES: dict[str, bytes] = {
    "not JSON": b"abc",
    "truncated": b'{"alg":"ES256"',
    "two objects": b"{}{}",
    "something after it": OBJECT.encode() + b"x",
    "trailing comma": b'{"alg":"ES256",}',
    "single quotes": b"{'alg':'ES256'}",
    "comment": b'{"alg":"ES256"/**/}',
    "control character": b'{"alg":"ES\n256"}',
    "UTF-16": OBJECT.encode("utf-16"),
    "UTF-16-LE": OBJECT.encode("utf-16-le"),
    "UTF-32": OBJECT.encode("utf-32"),
    "BOM": b"\xef\xbb\xbf" + OBJECT.encode(),
    "not UTF-8": b'{"kid":"\xff"}',
    "surrogate in UTF-8": b'{"kid":"\xed\xa0\x80"}',
    "overlong UTF-8": b'{"kid":"\xc0\x80"}',
    "lone surrogate": b'{"kid":"\\ud800"}',
    "lone surrogate as a name": b'{"\\udfff":1}',
    "repeated": b'{"alg":"none","alg":"ES256"}',
    "repeated, escaped": b'{"alg":"none","\\u0061lg":"ES256"}',
    "repeated below": b'{"x":[{"a":1,"a":1}]}',
    "NaN": b'{"x":NaN}',
    "Infinity": b'{"x":Infinity}',
    "-Infinity": b'{"x":-Infinity}',
    "overflow": b'{"x":1e999}',
    "negative overflow": b'{"x":-1e999}',
    "long integer": b'{"x":' + b"1" * 3_000 + b"0" * 20 + b"1" * 1_400 + b"}",
    "integer of 309 digits": b'{"x":1' + b"0" * 308 + b"}",
    "negative integer of 400 digits": b'{"x":-' + b"9" * 400 + b"}",
    "deep": b'{"x":' + b"[" * 32 + b"]" * 32 + b"}",
    "deep objects": b'{"x":' * 33 + b"1" + b"}" * 33,
    "very deep": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "very deep, escaped": b'{"x":"\\u0061","y":' + b"[" * 500 + b"]" * 500 + b"}",
}

NOT_STRICT: dict[str, bytes] = NOT_STRICT_VALUES | {
    "array": b"[]",
    "string": b'"ES256"',
    "number": b"1",
    "null": b"null",
}
