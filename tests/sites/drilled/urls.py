"""Three addresses, and those of a broken shop."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path
from django.views import View

from django_identity.gates import ClaimRequiredMixin, claim_required, kyc_level_required

HOME = (
    "{% load identity %}<h1>Shop</h1>{% identity_login_button %}"
    '{% if request.user|has_claim:"age_over_18" %}<a href="/wine/">Wine</a>{% endif %}'
)


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(HOME).render(RequestContext(request)))


def wine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("wine")


def vault(request: HttpRequest) -> HttpResponse:
    return HttpResponse("the vault")


class Bar(ClaimRequiredMixin, View):
    required_claims = ("age_over_18",)

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("the bar")


class Export(Bar):
    def dispatch(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponse:
        return self.get(request)


BREAKS = settings.SITE_BREAKS
urlpatterns = [
    path("", home, name="home"),
    path("bar/", Bar.as_view()),
    path(
        "wine/", wine if "template" in BREAKS else claim_required("age_over_18")(wine)
    ),
    path("bar/", kyc_level_required("level_9")(vault)),  # nobody gets there
    path("vault/", kyc_level_required("level_2")(vault)),
    path("identity/", include("django_identity.urls")),
]
if "early" in BREAKS:
    from tests.sites.drilled import worker

    assert worker.app.conf.broker_url  # its settings are read
if "gateless" in BREAKS:
    urlpatterns = [urlpatterns[0], urlpatterns[-1]]
if "subclass" in BREAKS:
    urlpatterns.append(path("export/", Export.as_view()))
if "beside" in BREAKS:
    urlpatterns.append(path("back/", vault))
