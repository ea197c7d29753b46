"""The test's site for a web server of its own process: ``gunicorn tests.integration.wsgi``."""

from django.core.wsgi import get_wsgi_application

from tests import concurrency

concurrency.join()
application = get_wsgi_application()
