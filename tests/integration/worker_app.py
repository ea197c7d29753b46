"""The Celery app of a site whose workers get killed (``celery -A tests.integration.worker_app``).

Each process calls the counting service under its own number, so that the service's list of
calls says which process made them.
"""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init
from django.conf import settings
from django.test import override_settings

from tests import concurrency
from tests.integration.counting_service import setting

app = Celery("site", broker=os.environ["CELERY_BROKER_URL"])
app.conf.task_default_queue = os.environ["WORKER_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
# Celery ends a process that is not up within 4 seconds, so on a busy machine none would ever be.
app.conf.worker_proc_alive_timeout = 120.0
app.autodiscover_tasks(["django_identity"])
# Not before there is an app, which Django's start remembers.
concurrency.join()


@worker_init.connect
@worker_process_init.connect
def name_itself(**_kwargs: Any) -> None:
    origin = settings.DJANGO_IDENTITY["API_ORIGIN"]
    identity = setting(origin, os.getpid(), TIMEOUT=60)
    override_settings(DJANGO_IDENTITY=identity).enable()
