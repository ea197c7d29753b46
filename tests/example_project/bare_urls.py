"""The addresses of the bare site: the package's pages, a gate, and a page of buttons."""

from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path

from django_identity.gates import claim_required
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


urlpatterns = [
    path("", buttons, name="home"),
    path("residents/", local_offer, name="residents"),
    path("identity/", include("django_identity.urls")),
]
