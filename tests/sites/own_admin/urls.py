"""The site's own admin has the package's pages, and Django's has none of them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from django_identity import models
from tests.sites.plain.urls import urlpatterns as pages

staff = admin.AdminSite(name="staff")
for model in (
    models.LinkedIdentity,
    models.WebhookEvent,
    models.ErasureReceipt,
    models.Overview,
):
    staff.register(model, type(admin.site.get_model_admin(model)))
    admin.site.unregister(model)

urlpatterns = [path("admin/", staff.urls), path("django/", admin.site.urls), *pages[:-1]]
