"""The snippets of ``docs/beside.md`` at addresses of their own, beside the pages of the walk."""

from django.urls import include, path
from rest_framework_simplejwt.views import TokenRefreshView

from tests.sites.plain.urls import urlpatterns as pages
from tests.snippets import module_of

simplejwt = module_of("simplejwt")

urlpatterns = [
    path("tokens/", simplejwt.Exchange.as_view()),
    path("tokens/refresh/", TokenRefreshView.as_view()),
    path("by-token/wine", simplejwt.Wine.as_view()),
    path("ninja/", module_of("ninja").api.urls),
    path("prices/", module_of("stream").prices),
    path("identity/api/", include("django_identity.api.urls")),
    *pages,
]
