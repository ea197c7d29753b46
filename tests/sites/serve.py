"""The site's process: ``python -m tests.sites.serve SERVER PORT``.

Make every database, create the people with a password, and serve.
"""

import sys
from importlib import import_module

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.core.servers import basehttp
from django.core.wsgi import get_wsgi_application
from django.db import connections, models
from django.utils.module_loading import import_string

from tests.sites.site_table import MEMBERS, OPERATOR, PASSWORD


def make_people() -> None:
    model = get_user_model()
    is_email = isinstance(
        model._meta.get_field(model.USERNAME_FIELD),
        models.EmailField,
    )
    for name in (OPERATOR, *MEMBERS):
        manager = model._default_manager
        make = manager.create_superuser if name == OPERATOR else manager.create_user
        login = {model.USERNAME_FIELD: f"{name}@members.example" if is_email else name}
        make(password=PASSWORD, **login, **settings.SITE_USER_FIELDS)


def main(server: str, port: str) -> None:
    django.setup()
    for alias in connections:
        call_command("migrate", database=alias, run_syncdb=True, verbosity=0)
    make_people()
    if settings.SITE_READY:
        import_string(settings.SITE_READY)()
    connections.close_all()
    if server == "asgi":
        # Only sites that are served so need it.
        uvicorn = import_module("uvicorn")
        uvicorn.run(
            get_asgi_application(),
            host="127.0.0.1",
            port=int(port),
            log_level="error",
        )
    else:
        basehttp.run("127.0.0.1", int(port), get_wsgi_application(), threading=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
