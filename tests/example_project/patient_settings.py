"""The example project without a limit of tries, and with an application whose service is away."""

from example_project.settings import *  # noqa: F403
from example_project.settings import DJANGO_IDENTITY

NOWHERE = {"BASE_URL": "http://127.0.0.1:9/api/v1", "AUTH_URL": "http://127.0.0.1:9"}
DJANGO_IDENTITY = {**DJANGO_IDENTITY, "away": {**DJANGO_IDENTITY, **NOWHERE}}
