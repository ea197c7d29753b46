"""What is wrong with a webhook delivery, or with us while we take it in."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.root import IdentityError, Recovery, Stage


class EventRefused(IdentityError):
    """A delivery that is not taken in; delivering the same again changes nothing."""

    code = "event_refused"
    stage = Stage.EVENT
    recovery = Recovery.CONTACT


class SignatureInvalid(EventRefused):
    code = "signature_invalid"
    public_message = _("The signature does not fit the body.")


class EventUnreadable(EventRefused):
    """Signed, and yet not an event. The body's SHA-256 digest is all that is kept of it."""

    code = "event_unreadable"
    public_message = _("The body is not an event.")

    def __init__(self, detail: str = "", *, body_digest: str = "") -> None:
        super().__init__(f"{detail} (body {body_digest})" if body_digest else detail)
        self.body_digest = body_digest


class StorageUnavailable(IdentityError):
    """The database did not answer, or found no order for us; deliver it again."""

    code = "storage_unavailable"
    stage = Stage.STORAGE
    public_message = _("This site cannot store anything at the moment.")
