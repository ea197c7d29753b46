"""Tables in which a site may have left something, one for each kind of column and model."""

# ruff: noqa: DJ008  nobody looks at them

from django.db import models


class Nobody(models.Manager["Copy"]):
    """Hides every row, as a manager for soft deletes does."""

    def get_queryset(self) -> models.QuerySet["Copy"]:
        return super().get_queryset().none()


class Copy(models.Model):
    text = models.TextField(blank=True)
    data = models.JSONField(default=dict)
    blob = models.BinaryField(default=b"")
    upload = models.FileField(blank=True)
    reference = models.UUIDField(null=True)

    objects = Nobody()

    class Meta:
        base_manager_name = "objects"


class SpecialCopy(Copy):
    note = models.CharField(max_length=200)


class Author(models.Model):
    name = models.CharField(max_length=200, primary_key=True)


class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    readers = models.ManyToManyField(Author, related_name="+")


class Account(models.Model):
    """Somebody at another service, by the same key as here."""

    key = models.UUIDField(primary_key=True)


class Payment(models.Model):
    account = models.ForeignKey(Account, models.CASCADE)


class HistoricalUser(models.Model):
    """As a history package makes it."""

    history_id = models.AutoField(primary_key=True)
    first_name = models.CharField(max_length=150)
    email = models.CharField(max_length=254)


class Elsewhere(models.Model):
    """A table of somebody else's, which is not there."""

    text = models.TextField()

    class Meta:
        managed = False


class Sealed(models.TextField):  # type: ignore[type-arg]
    """A column that reads in its own way, and cannot always."""

    def from_db_value(self, value: str, *_: object) -> str:
        if value.startswith("!"):
            raise ValueError(value)
        return value[::-1]

    def get_prep_value(self, value: str) -> str:
        return value if value.startswith("!") else value[::-1]


class Letter(models.Model):
    text = Sealed()
