"""The addresses of the bare site: the package's pages, a gate, and a page of buttons."""

from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path
from django.views.decorators.cache import cache_page
from django.views.generic import View

from django_identity.gates import ClaimRequiredMixin, KycLevelRequiredMixin, claim_required
from django_identity.templatetags.identity import SIZES, THEMES

BUTTONS = """{% load identity %}<!doctype html><html lang="en"><head><title>Buttons</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>
<h1>Nothing but the tag</h1>{% for theme in themes %}{% for size in sizes %}
<p>{% identity_login_button size=size theme=theme %}</p>
{% endfor %}{% endfor %}</main></body></html>"""


def buttons(request: HttpRequest) -> HttpResponse:
    """Every size in every theme, on a page without any style."""
    context = RequestContext(request, {"sizes": SIZES, "themes": THEMES})
    return HttpResponse(Template(BUTTONS).render(context))


@claim_required("country_resident=NG", on_closed="forbid")
def local_offer(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


@cache_page(60)
@claim_required("age_over_18")
def cached(request: HttpRequest) -> HttpResponse:
    """A cache that stands outside the gate."""
    return HttpResponse(f"secret of {request.user.get_username()}")


class Adults(ClaimRequiredMixin, View):
    required_claims = ("age_over_18",)

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("secret")


class Verified(KycLevelRequiredMixin, Adults):
    """A gate that stands upon another one."""

    required_kyc_level = "level_2"


PARTS = """{% load identity %}<p>
{% identity_gate "age_over_18" %}secret of the tag{% else %}denied{% end_identity_gate %}
{% if not user|has_claim:"age_over_18" %}denied{% else %}secret of the filter{% endif %}
{% with user="" %}{% if not user|has_claim:"age_over_18" %}denied{% else %}secret of nobody
{% endif %}{% endwith %}</p>"""


def parts(request: HttpRequest) -> HttpResponse:
    """A page that decides in its template."""
    return HttpResponse(Template(PARTS).render(RequestContext(request, {"user": request.user})))


urlpatterns = [
    path("doors/cached/", cached),
    path("doors/stacked/", Verified.as_view()),
    path("doors/parts/", parts),
    path("", buttons, name="home"),
    path("residents/", local_offer, name="residents"),
    path("identity/", include("django_identity.urls")),
]
