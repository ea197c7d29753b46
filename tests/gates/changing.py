"""The addresses of a site, which a test replaces."""

from typing import Any

urlpatterns: list[Any] = []
