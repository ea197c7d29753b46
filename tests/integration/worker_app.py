"""The Celery app of a site (``celery -A tests.integration.worker_app``)."""

import os

from celery import Celery

from tests import concurrency

app = Celery("site", broker=os.environ["CELERY_BROKER_URL"])
app.conf.task_default_queue = os.environ["WORKER_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
# Celery ends a process that is not up within 4 seconds, so on a busy machine none would ever be.
app.conf.worker_proc_alive_timeout = 120.0
app.autodiscover_tasks(["django_identity"])
# Not before there is an app, which Django's start remembers.
concurrency.join()
