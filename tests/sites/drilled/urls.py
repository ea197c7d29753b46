"""Three gated addresses, and those of a broken shop."""

from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path

from tests.sites.drilled import pages
from tests.sites.plain import views

BREAKS = settings.SITE_BREAKS
urlpatterns = [
    path("", views.home, name="home"),
    path("bar/", pages.Bar.as_view()),
    path("wine/", pages.adult(pages.wine)),
    path("bar/", pages.LEVEL(pages.vault)),  # nobody gets there
    path("vault/", pages.LEVEL(pages.vault)),
    path("identity/", include("django_identity.urls")),
]
if "early" in BREAKS:
    from tests.sites.drilled import worker

    assert worker.app.conf.broker_url  # its settings are read
if "gateless" in BREAKS:
    urlpatterns = [urlpatterns[0], urlpatterns[-1]]
if "languages" in BREAKS:
    urlpatterns = [urlpatterns.pop(), *i18n_patterns(*urlpatterns)]
urlpatterns += [entry for name, entry in pages.BROKEN.items() if name in BREAKS]
