"""The documents of a person: made up from the account, the same at each reading."""

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass, field

from django_identity.sandbox.models import KycStatus, User

PNG, PDF, JSON = "image/png", "application/pdf", "application/json"
_WIDTH, _HEIGHT = 160, 112


@dataclass(frozen=True, slots=True)
class Paper:
    """One document with its plain content."""

    document_id: str
    document_type: str
    country: str
    status: str
    content_type: str
    content: bytes = field(repr=False)


def papers_of(user: User) -> list[Paper]:
    """Return the documents of ``user``. An unverified person has handed in none."""
    if user.kyc_status == KycStatus.UNVERIFIED:
        return []
    number = _number_of(user)
    bvn = {"bank_verification_number": number}
    papers = [
        _paper(user, "passport", PNG, _image(number)),
        _paper(user, "national_id", PDF, _page(f"National ID of {user.full_name}: {number}")),
        _paper(user, "bank_verification_number", JSON, json.dumps(bvn).encode()),
    ]
    if user.address_proved_at is not None:
        text = f"Proof of address of {user.full_name}"
        papers.append(_paper(user, "proof_of_address", PDF, _page(text)))
    return papers


def _paper(user: User, document_type: str, content_type: str, content: bytes) -> Paper:
    name = f"{user.subject}/{document_type}"
    document_id = hashlib.sha256(name.encode()).hexdigest()[:16]
    status = str(user.kyc_status)
    return Paper(document_id, document_type, user.country, status, content_type, content)


def _number_of(user: User) -> str:
    """Eleven digits that are this person's own, and nobody's number in the real world."""
    return str(int(hashlib.sha256(user.subject.encode()).hexdigest(), 16))[:11]


def _image(seed: str) -> bytes:
    """Draw a PNG: a head and shoulders on a card, in colours of its own (RFC 2083)."""
    red, green, blue = hashlib.sha256(seed.encode()).digest()[:3]
    paper, ink = bytes((232, 236, 240)), bytes((red // 2, green // 2, blue // 2))
    rows = bytearray()
    for y in range(_HEIGHT):
        rows.append(0)
        for x in range(_WIDTH):
            head = (x - 80) ** 2 + (y - 42) ** 2 < 24**2
            shoulders = ((x - 80) / 44) ** 2 + ((y - 112) / 42) ** 2 < 1
            rows += ink if head or shoulders else paper
    shape = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", shape), (b"tEXt", b"Comment\0" + seed.encode()),
              (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b""))  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def _page(text: str) -> bytes:
    """Write a PDF of one page with one line (ISO 32000). It has Latin letters only."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    line = b"BT /F1 14 Tf 40 150 Td (" + escaped.encode("latin-1", "replace") + b") Tj ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 300] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(line), line),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    written, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    entries = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, entries)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d" % (size, len(written))
    return b"%s%s%s\n%%%%EOF\n" % (written, table, trailer)
