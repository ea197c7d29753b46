"""Control of the signing keys."""

from typing import Any

from django_identity.sandbox.control.body import Body, UnknownObject
from django_identity.sandbox.keys import key_set


def show_keys(body: Body) -> dict[str, Any]:
    """GET keys: the key that signs, and all that are published."""
    published = [key["kid"] for key in key_set.published()["keys"]]
    return {"signing": key_set.current().kid, "published": published}


def rotate_keys(body: Body) -> dict[str, Any]:
    """POST keys/rotate: a new key signs; the old one stays published."""
    key_set.rotate()
    return show_keys(body)


def withdraw_key(body: Body) -> dict[str, Any]:
    """POST keys/withdraw: take a key out of publication at once."""
    if not key_set.withdraw(body.text("kid")):
        raise UnknownObject("No such key is published.")
    return show_keys(body)
