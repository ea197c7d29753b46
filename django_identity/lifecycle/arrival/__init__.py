"""A person signs in, links an identity, or enters a Connect code.

``sign_in`` and ``connect`` are the two ways; ``linking`` chooses the account, ``service_data``
stores the service's data; ``accounts`` creates the site's users; ``authorization_requests`` stores
started sign-ins; ``limits`` limits Connect codes and started
sign-ins; ``unlinking`` disconnects; ``link_notice`` sends the owner an e-mail about a new link.
"""

from django_identity.lifecycle.arrival.authorization_requests import SIGN_IN_LIFETIME, SignInIntent
from django_identity.lifecycle.arrival.connect import (
    identity_of,
    is_by_code,
    is_spent,
    may_redeem,
    redeem,
)
from django_identity.lifecycle.arrival.link_notice import send_change_on_commit
from django_identity.lifecycle.arrival.sign_in import (
    Callback,
    begin,
    complete,
    purpose_for,
    require_open,
)
from django_identity.lifecycle.arrival.unlinking import application_to_leave, parting, unlink

__all__ = [
    "SIGN_IN_LIFETIME",
    "Callback",
    "SignInIntent",
    "application_to_leave",
    "begin",
    "complete",
    "identity_of",
    "is_by_code",
    "is_spent",
    "may_redeem",
    "parting",
    "purpose_for",
    "redeem",
    "require_open",
    "send_change_on_commit",
    "unlink",
]
