"""What cannot be proven or opened: credentials and sealed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.root import IdentityError, Recovery, Stage

if TYPE_CHECKING:
    from django_identity.credentials.reasons import RejectionReason


class CredentialRejected(IdentityError):
    """A credential failed a check. ``reason`` says which, from a closed enum."""

    code = "credential_rejected"
    stage = Stage.CREDENTIAL
    public_message = _("The identity service sent a proof that this site could not verify.")

    def __init__(self, reason: RejectionReason) -> None:
        super().__init__(reason.value)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CredentialRejected], tuple[RejectionReason]]:
        return type(self), (self.reason,)


class NoCredential(IdentityError):
    """There is no credential to look at: none came, or it went with the consent."""

    code = "no_credential"
    stage = Stage.CREDENTIAL
    recovery = Recovery.RESTART


class DocumentUnreadable(IdentityError):
    """An encrypted document that none of ``DOCUMENT_KEYS`` opens, or that is none."""

    code = "document_unreadable"
    stage = Stage.CREDENTIAL
    recovery = Recovery.CONTACT


class SealedValueUnreadable(IdentityError):
    code = "sealed_value_unreadable"
    stage = Stage.STORAGE
    recovery = Recovery.RESTART
