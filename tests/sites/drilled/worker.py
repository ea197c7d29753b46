"""The shop's Celery app. Only the URLconf imports it, so it is not there when apps are ready."""

from celery import Celery

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")


@app.task
def greet() -> None:
    """Nothing: the message is what counts."""
