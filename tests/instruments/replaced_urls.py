"""A URLconf whose patterns a test replaces."""

from typing import Any

urlpatterns: list[Any] = []
