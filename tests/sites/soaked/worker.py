"""``celery -A tests.sites.soaked.worker worker --beat``"""

from __future__ import annotations

import os

from celery import Celery

app = Celery("soaked", broker=os.environ["CELERY_BROKER_URL"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_default_queue = os.environ["SOAK_NAME"]
app.conf.broker_connection_retry_on_startup = True
app.conf.broker_transport_options = {"socket_timeout": 10, "socket_connect_timeout": 5}
app.autodiscover_tasks()
