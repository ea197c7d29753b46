"""An identity service on Authlib's server, as a process: ``python -m tests.others.provider``.

It prints its origin and its application.
"""

import importlib
import json
import os
import socket
import sys
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.core.management import call_command


class Quiet(WSGIRequestHandler):
    def log_message(self, *_args: Any) -> None:
        pass


def main() -> None:
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings.configure(
        SECRET_KEY="a key for tests alone, of no use anywhere else",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="tests.others.authlib_urls",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
        MIDDLEWARE=[],
        USE_TZ=True,
        APPEND_SLASH=False,
        PROVIDER_ORIGIN=f"http://127.0.0.1:{port}",
        AUTHLIB_OAUTH2_PROVIDER={"refresh_token_generator": True},
    )
    django.setup()
    call_command("migrate", verbosity=0)
    client = importlib.import_module("tests.others.authlib_urls").CLIENT
    # It needs settings.
    from django.core.wsgi import get_wsgi_application  # noqa: PLC0415

    application = get_wsgi_application()
    with make_server("127.0.0.1", port, application, handler_class=Quiet) as server:
        sys.stdout.write(json.dumps(client) + "\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
