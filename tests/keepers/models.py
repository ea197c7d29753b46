"""Tables of apps that keep history, as several packages make them. They are not there."""

# ruff: noqa: DJ008  as these packages have it, and nobody looks at them

from django.contrib.auth.models import AbstractUser
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models


class Entry(models.Model):
    """What changed, of any model, as JSON."""

    content_type = models.ForeignKey(ContentType, models.CASCADE)
    object_pk = models.CharField(max_length=255)
    changes = models.JSONField(null=True)


class Snapshot(models.Model):
    """A row of any model as text, below a base of its own."""

    content_type = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.CharField(max_length=255)
    serialized_data = models.TextField()


class Revision(Snapshot):
    comment = models.CharField(max_length=99)


class UserEvent(AbstractUser):
    """A copy of the user's row, by a trigger of the database."""

    groups = None
    user_permissions = None
    event_id = models.AutoField(primary_key=True)
    event_user = models.ForeignKey("auth.User", models.CASCADE, related_name="events")


class Tag(models.Model):
    """It refers to rows of any model, and has no text about them."""

    content_type = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.TextField()
    name = models.CharField(max_length=99)
    about = GenericForeignKey()


class Customer(models.Model):
    """It has some fields of the user."""

    first_name = models.CharField(max_length=150)
    last_name = models.CharField(max_length=150)
    email = models.EmailField()
