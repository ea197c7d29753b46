"""What an e-mail address is. One rule serves all, as an address of another account is refused.

A text that two accounts could share under two spellings is no address. Only a domain may have two,
in Unicode and in Punycode: both are compared.
"""

from unicodedata import is_normalized

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from django_identity.service.members import REPLACEMENT

PUNYCODE = "xn--"


def address_of(given: str) -> str:
    """The e-mail address that is given, as ``create_user`` stores it, or an empty text for none.

    Django's validator alone lets pass what looks like another address or is one: a control
    character (which the parser has replaced), an invisible one, a letter of a local part that
    upper case makes ASCII (U+017F), a quoted local part, a wide letter of a domain.
    """
    normalize = getattr(get_user_model()._default_manager, "normalize_email", str)
    address = str(normalize(given.strip()))
    try:
        validate_email(address)
    except ValidationError:
        return ""
    local = address.rpartition("@")[0]
    if not local.isascii() or '"' in local:
        return ""
    if not address.isprintable() or REPLACEMENT in address:
        return ""
    if not is_normalized("NFKC", address):
        return ""
    return address


def spellings_of(address: str) -> set[str]:
    """The same mailbox, with its domain as given, in Punycode and in Unicode (RFC 5891)."""
    local, _, domain = address.rpartition("@")
    labels = domain.lower().split(".")
    domains = {
        domain,
        ".".join(map(_in_ascii, labels)),
        ".".join(map(_in_unicode, labels)),
    }
    # A spelling that no database takes is in none.
    stored = [each for each in domains if each.isprintable()]
    return {f"{local}@{each}" for each in stored}


def _in_ascii(label: str) -> str:
    if label.isascii():
        return label
    return PUNYCODE + label.encode("punycode").decode("ascii")


def _in_unicode(label: str) -> str:
    if not label.startswith(PUNYCODE):
        return label
    try:
        return label.removeprefix(PUNYCODE).encode().decode("punycode")
    except UnicodeError:
        return label
