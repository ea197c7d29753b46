"""The Celery apps of the shop, each with addresses for all that it may connect to."""

import os

from celery import Celery

URL = os.environ["SITE_BROKER"]

app = Celery("shop")
books = Celery("books", set_as_current=False)
for each in (app, books):
    each.conf.update(
        broker_url=URL,
        broker_write_url=URL,
        broker_read_url=URL,
        result_backend=URL,
        task_store_eager_result=True,
    )


@app.task(name="shop.count")
def count(user: object) -> None:
    """Nobody counts."""
