"""``gunicorn tests.sites.soaked.wsgi``"""

from __future__ import annotations

from django.core.wsgi import get_wsgi_application

# Django's processes publish tasks with this app.
from tests.sites.soaked.worker import app

__all__ = ["app", "application"]

application = get_wsgi_application()
