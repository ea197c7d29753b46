"""Somebody comes with an identity: they sign in, link it, or paste a Connect code.

``sign_in`` and ``connect`` are the two ways in; ``linking`` decides whose account it is and stores
what came; ``accounts`` makes and fills the site's users; ``authorization_requests`` and
``redemptions`` remember what was begun; ``limits`` counts tries; ``link_notice`` mails the owner.
"""

from django_identity.lifecycle.arrival.authorization_requests import SIGN_IN_LIFETIME, SignInIntent
from django_identity.lifecycle.arrival.connect import (
    identity_of,
    is_spent,
    may_redeem,
    redeem,
    undo_code_link,
)
from django_identity.lifecycle.arrival.linking import unlink
from django_identity.lifecycle.arrival.sign_in import Callback, begin, complete, purpose_for

__all__ = [
    "SIGN_IN_LIFETIME",
    "Callback",
    "SignInIntent",
    "begin",
    "complete",
    "identity_of",
    "is_spent",
    "may_redeem",
    "purpose_for",
    "redeem",
    "undo_code_link",
    "unlink",
]
