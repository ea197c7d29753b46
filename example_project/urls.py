"""The example project's addresses."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from example_project.circle import documents, views

urlpatterns = [
    path("", views.home, name="home"),
    path("favicon.ico", RedirectView.as_view(url=static("circle/ring.svg"))),
    path("adults/", views.adults, name="adults"),
    path("residents/", views.residents, name="residents"),
    path("loans/", views.Loans.as_view(), name="loans"),
    path("leave/", views.leave, name="leave"),
    path("api/circles/", views.CirclesApi.as_view(), name="circles-api"),
    path(
        "accounts/login/",
        LoginView.as_view(template_name="circle/local_sign_in.html"),
        name="local-sign-in",
    ),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("identity/", include("django_identity.urls")),
    path("language/", set_language, name="set_language"),
    path("admin/", admin.site.urls),
]

# The trusted tier, where the site is registered for it: no other site may ask for the scope.
if "documents:read" in settings.DJANGO_IDENTITY.get("LATER_SCOPES", ()):
    urlpatterns += [
        path("documents/", documents.listing, name="documents"),
        path("documents/passport/", documents.passport, name="passport"),
    ]
