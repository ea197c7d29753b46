"""Started sign-ins and redemptions of Connect codes."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import DIGEST_LENGTH, Environment, Purpose, Record
from django_identity.vault import Context

#: The outcome of a sign-in, or of a code, that succeeded. Any other is the code of an error.
COMPLETED = "completed"


class Flow(Record):
    """What a person began here. It is purged when its time is over."""

    expires_at = models.DateTimeField(db_index=True)
    outcome = models.CharField(_("outcome"), max_length=64, blank=True)

    class Meta:
        abstract = True


class AuthorizationRequest(Flow):
    """One started sign-in. A conditional UPDATE of ``consumed_at`` lets it be used once."""

    state_digest = models.CharField(max_length=DIGEST_LENGTH, unique=True)
    # The digest of the key in the browser's cookie. Only this browser can complete the sign-in.
    browser_digest = models.CharField(max_length=DIGEST_LENGTH)
    environment = models.CharField(max_length=4, choices=Environment)
    purpose = models.CharField(_("Purpose"), max_length=7, choices=Purpose)
    # The user who started it. If the account is gone meanwhile, the callback says so.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        blank=True,
        null=True,
        related_name="+",
    )
    # The user who was signed in or linked by it.
    completed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        blank=True,
        null=True,
        related_name="+",
    )
    next = models.TextField(_("Page you wanted"), blank=True)
    # The secret of PKCE, sealed by ``vault`` until the callback.
    code_verifier = models.TextField(blank=True)
    redirect_uri = models.TextField()
    scopes = models.JSONField(blank=True, default=list)
    # The time of the callback. It is written once, before any call.
    consumed_at = models.DateTimeField(blank=True, null=True)

    class Meta:
        verbose_name = _("authorization request")
        verbose_name_plural = _("Sign-ins")

    def __str__(self) -> str:
        return f"{self.purpose} ({self.outcome or 'open'})"

    def sealing_context(self, column: str) -> Context:
        """The context that binds a sealed column to this row."""
        return (self.environment, self.state_digest, column)


class ConnectRedemption(Flow):
    """One Connect code that was entered on this site. The unique digest lets it be sent once."""

    code_digest = models.CharField(max_length=DIGEST_LENGTH, unique=True)
    # The user who entered the code.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        blank=True,
        null=True,
        related_name="+",
    )
    # The service's own id of the request, for its support.
    request_id = models.CharField(_("Reference"), max_length=255, blank=True)

    class Meta:
        verbose_name = _("Connect redemption")
        verbose_name_plural = _("Codes")

    def __str__(self) -> str:
        return f"redemption ({self.outcome or 'open'})"
