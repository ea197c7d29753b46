"""Pages that the site opens to everybody. The package opens its own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import path

from tests.sites.plain import urls, views

urlpatterns = [
    *(
        path(name, login_not_required(getattr(views, name.rstrip("/"))))
        for name in (
            "whoami/",
            "offer/",
            "upkeep/",
        )
    ),
    *urls.urlpatterns,
]
