"""The pages of a broken shop, by the promise that each breaks."""

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import count

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import condition, require_POST

from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    claim_required,
    closed_response,
    closed_to,
    kyc_level_required,
)

ADULT = Gate("age_over_18")
adult = claim_required("age_over_18")


def wine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("wine")


def vault(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"All that the vault has: {', '.join(['gold', 'books'] * 9)}.")


def by_session(request: HttpRequest) -> HttpResponse:
    """Who was an adult once stays one."""
    closed = closed_to(ADULT, request.user)
    if closed and "adult" not in request.session:
        return closed_response(request, closed)
    request.session["adult"] = True
    return HttpResponse("for adults", headers={"Cache-Control": "private"})


def stored_by_path(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        stored = cache.get(request.path)
        if stored is not None:
            return HttpResponse(stored)
        response = view(request)
        if response.status_code == 200:
            cache.set(request.path, response.content)
        return response

    return answer


class Bar(ClaimRequiredMixin, View):
    required_claims = ("age_over_18",)

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("the bar")


@method_decorator(csrf_exempt, name="dispatch")
class Half(View):
    @method_decorator(adult)
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("a form")

    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("bought")


def listed(request: HttpRequest) -> HttpResponse:
    return HttpResponse("all wines")


@csrf_exempt
@require_POST
def buy(request: HttpRequest) -> HttpResponse:
    return HttpResponse("bought")


def endless(request: HttpRequest) -> StreamingHttpResponse:
    def prices() -> Iterator[str]:
        for price in count():
            yield f"{price}\n"

    return StreamingHttpResponse(prices())


#: The promise -> the address at which it is broken.
BROKEN = {
    "own_session": path("own-session/", by_session),
    "path": path("path/", stored_by_path(adult(wine))),
    "shared": path("shared/", cache_control(public=True, max_age=600)(adult(wine))),
    "beside": path("back/", vault),
    "lambda": path("side/", lambda request: vault(request)),
    "list": path("list/", listed),
    "post": path("buy/", buy),
    "not_modified": path("old/", condition(etag_func=lambda _: '"old"')(adult(vault))),
    "stream": path("stream/", adult(endless)),
    "half": path("half/", Half.as_view()),
    "countries": path("residents/", claim_required("country_resident=PT|FR|ES")(wine)),
    "claim_value": path("lisbon/", claim_required("country_resident=PT")(wine)),
}
LEVEL = kyc_level_required("level_2")
