"""What the shop stores of a person, beside the account."""

# ruff: noqa: DJ008  nobody looks at them

from django.conf import settings
from django.db import models


class Order(models.Model):
    """It outlives the account, for the books."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    name = models.CharField(max_length=200)


class History(models.Model):
    name = models.CharField(max_length=200)


class Letter(models.Model):
    email = models.CharField(max_length=200, unique=True)


class EventLog(models.Model):
    payload = models.JSONField(null=True)


class TaskResult(models.Model):
    result = models.TextField()


class Crew(models.Model):
    names = models.JSONField(default=list)


if "copies" in settings.SITE_BREAKS:

    class Guest(models.Model):
        """Of another program, which makes its table."""

        name = models.CharField(max_length=200)

        class Meta:
            managed = False
            db_table = "partner_guest"
