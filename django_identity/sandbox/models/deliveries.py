"""Deliveries of events to applications, and their attempts."""

from typing import ClassVar

from django.db import models

from django_identity.sandbox.server.marking import marked as _


class DeliveryState(models.TextChoices):
    """The state of a delivery."""

    WAITING = "waiting"
    HELD = "held"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(models.Model):
    """One event for one credential set, with the exact text that is sent.

    ``tries`` counts the attempts since the delivery was last ordered. ``next_attempt_at`` uses the
    sandbox's clock and is empty unless the delivery is waiting.
    """

    client = models.ForeignKey("sandbox.Client", models.CASCADE)
    event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=100)
    user_id = models.CharField(max_length=255)
    body = models.TextField()
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    tries = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["pk"]
        indexes: ClassVar = [models.Index(fields=["state", "next_attempt_at"], name="delivery_due")]

    def __str__(self) -> str:
        return self.event_id


class DeliveryAttempt(models.Model):
    """One request of a delivery, with its answer."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    sent_at = models.DateTimeField()
    url = models.CharField(max_length=2000)
    headers = models.JSONField()
    status = models.PositiveIntegerField(null=True)
    excerpt = models.TextField()
    problem = models.CharField(max_length=200)
    milliseconds = models.FloatField()
    is_private = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"Attempt #{self.pk}"

    @property
    def acknowledged(self) -> bool:
        """Whether the receiver acknowledged the event: any 2xx."""
        return self.status is not None and 200 <= self.status < 300

    def withhold(self) -> None:
        """Remove the answer from this instance, because only this machine may see it."""
        self.status, self.excerpt, self.milliseconds = None, "", 0
        self.problem = _("What a private address answers is shown on the sandbox's own machine.")


def attempts_for(delivery: Delivery, *, is_local: bool) -> list[DeliveryAttempt]:
    """Return the attempts of ``delivery``, without answers that the caller may not see."""
    attempts = list(delivery.attempts.all())
    for attempt in attempts:
        if attempt.is_private and not is_local:
            attempt.withhold()
    return attempts
