"""What the shop stores of a person, beside the account."""

from django.conf import settings
from django.db import models


class Order(models.Model):
    """It outlives the account, for the books."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"order {self.pk}"
