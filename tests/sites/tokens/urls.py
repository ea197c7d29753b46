"""The API of the site, and its own callback in front of the package's."""

from __future__ import annotations

from django.urls import path

from tests.sites.frontend.urls import urlpatterns as shop
from tests.sites.tokens.views import TokenCallback

urlpatterns = [path("identity/api/callback", TokenCallback.as_view()), *shop]
