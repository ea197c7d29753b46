"""URLconfs in which our addresses follow the visitor's language, each in another way."""

from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from tests import urls


class Conf:
    """An URLconf is anything with ``urlpatterns``."""

    def __init__(self, *patterns: object) -> None:
        self.urlpatterns = patterns


ours = path("identity/", include("django_identity.urls"))
prefixed = Conf(*i18n_patterns(ours))
prefixed_but_one = Conf(*i18n_patterns(ours, prefix_default_language=False))
translated = Conf(
    path(format_lazy("{}/", gettext_lazy("Yes")), include("django_identity.urls"))
)
others = Conf(ours, *i18n_patterns(path("", urls.home)))
