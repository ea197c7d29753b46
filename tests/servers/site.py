"""The test's site for a web server of its own process: ``gunicorn tests.servers.site``."""

from __future__ import annotations

from django.core.wsgi import get_wsgi_application

from tests import crowd

crowd.join()
application = get_wsgi_application()
