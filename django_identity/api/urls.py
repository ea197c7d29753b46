"""The addresses under ``api/``, in the URL namespace ``identity:api``."""

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import path

from django_identity import database

app_name = "api"

ENDPOINTS = {
    "me": "MeView",
    "login": "LoginView",
    "callback": "CallbackView",
    "connect": "ConnectView",
    "disconnect": "DisconnectView",
}


class _DeferredView:
    """A view that loads Django REST framework at its first request, for sites that have none.

    Its attributes are those that Django reads before it calls a view, and those of the view itself.
    """

    csrf_exempt = True
    login_required = False
    initkwargs: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, name: str) -> None:
        self._name = name
        database.non_atomic(self)

    def __call__(self, request: HttpRequest, /, **captured: str) -> HttpResponseBase:
        response: HttpResponseBase = self._view(request, **captured)
        return response

    @cached_property
    def cls(self) -> Any:
        """The class, which generators of a schema read."""
        return self._view.cls

    @cached_property
    def _view(self) -> Any:
        return getattr(import_module("django_identity.api.views"), self._name).as_view()


urlpatterns = [
    path(f"{name}{alias}", _DeferredView(view), name=name)
    for name, view in ENDPOINTS.items()
    for alias in ("", "/<slug:alias>")
]
