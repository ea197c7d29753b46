"""What a broken shop does to its requests and responses."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user_model
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden

GetResponse = Callable[[HttpRequest], HttpResponse]


def quick(get_response: GetResponse) -> GetResponse:
    """Every page may stay in a cache."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Cache-Control"] = "max-age=600"
        return response

    return answer


def replaced_user(get_response: GetResponse) -> GetResponse:
    """The user of the session's key, whatever has ended the session."""

    def answer(request: HttpRequest) -> HttpResponse:
        key: Any = request.session.get(SESSION_KEY)
        if key is not None:
            user = get_user_model().objects.filter(pk=key).first()
            request.user = user or request.user
        return get_response(request)

    return answer


def no_posts(get_response: GetResponse) -> GetResponse:
    """Nobody may post to the pages that are named."""

    def answer(request: HttpRequest) -> HttpResponse:
        named = any(name in request.path for name in settings.SITE_BREAKS)
        if request.method == "POST" and named:
            return HttpResponseForbidden()
        return get_response(request)

    return answer
