"""The pages of a site: open ones, gated ones, and one that decides in its template."""

from django.core.management import call_command
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import RequestContext, Template
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from django_identity.gates import claim_required, claims_of, kyc_level_required

HOME = "{% load identity %}<h1>Home</h1>{% identity_login_button %}"
OFFER = (
    "{% load identity %}"
    "{% if request.user|has_claim:'age_over_18' %}wine{% else %}juice{% endif %}"
)


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(HOME).render(RequestContext(request)))


def whoami(request: HttpRequest) -> JsonResponse:
    """Who is signed in, and what is proven of them."""
    user = request.user
    name = user.get_username() if user.is_authenticated else None
    return JsonResponse({"user": name, "claims": claims_of(user) if name else {}})


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("for adults")


@kyc_level_required("level_2")
def loans(request: HttpRequest) -> HttpResponse:
    return HttpResponse("for the verified")


@claim_required("country_resident=GB", on_closed="forbid")
def britons(request: HttpRequest) -> HttpResponse:
    return HttpResponse("for residents")


def offer(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(OFFER).render(RequestContext(request)))


@csrf_exempt
@require_POST
def upkeep(request: HttpRequest) -> HttpResponse:
    """What a worker does. It is here because a process of its own takes a second."""
    call_command("identity_upkeep", verbosity=0)
    return HttpResponse()
