"""What a shop opens when it is imported, and keeps: all of it is live."""

from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend

from tests.sites.drilled.broker import app, books, count

CACHE = caches["live"]
FILES = storages["live"]
MAIL = EmailBackend(file_path=settings.LIVE)


def use(*, user: Any, **_: object) -> None:
    CACHE.set("newest", user.first_name)
    FILES.save("newest.txt", ContentFile(user.first_name))
    MAIL.send_messages([EmailMessage("New", user.first_name, to=["us@shop.example"])])
    app.send_task("shop.greet", [user.pk])
    books.send_task("books.add", [user.pk])
    count.delay(user.pk)
