"""The map claims no gate that the site's own code, or another method, goes around."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from django import forms
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.urls import clear_url_caches, path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from django_identity.api.permissions import HasClaim
from django_identity.gates import ClaimRequiredMixin
from tests.gates.gated_views import Endpoint, Page, adult, view
from tests.instruments import replaced_urls

pytestmark = pytest.mark.urls("tests.instruments.replaced_urls")

Change = Callable[..., None]
ADULTS = method_decorator(adult)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Gives the site other URL patterns."""

    def change(*patterns: Any) -> None:
        monkeypatch.setattr(replaced_urls, "urlpatterns", list(patterns))
        clear_url_caches()

    return change


def listed(*options: Any) -> list[str]:
    """The lines without their titles, and with ``; `` between the columns."""
    output = io.StringIO()
    call_command("identity_gates", *options, stdout=output)
    lines = output.getvalue().splitlines()[1:]
    return [re.sub(" {2,}", "; ", line) for line in lines]


class PostAlone(Page):
    """A gate before one of two methods."""

    @ADULTS
    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("secret")


class Form(FormView):  # type: ignore[type-arg]
    """Django gives it a PUT, which is its POST; and its ``initial`` is a dict."""

    form_class = forms.Form
    initial = {"amount": 7}
    get = ADULTS(FormView.get)
    post = ADULTS(FormView.post)


class Preview(Page):
    """Answers some requests before a handler is called."""

    get = ADULTS(Page.get)
    post = None  # type: ignore[assignment]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return super().dispatch(request, *args, **kwargs)


class PreviewBeforeMixin(ClaimRequiredMixin, Page):
    """Its own answer stands below a gate of its own, and above the mixin's."""

    required_claims = ("country_resident=NG",)

    @ADULTS
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "preview" in request.GET:
            return HttpResponse("secret")
        return super().dispatch(request, *args, **kwargs)


@method_decorator(never_cache, name="dispatch")
class DecoratedMixin(ClaimRequiredMixin, Page):
    """It has no code of its own before the gate."""

    required_claims = ("age_over_18",)


class Hurried(Endpoint):
    """An endpoint whose own code runs before its handler."""

    get = ADULTS(Endpoint.get)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        pass


class Reporting(Endpoint):
    """It only notes what would be denied."""

    permission_classes = [HasClaim("age_over_18")]

    def permission_denied(self, request: Any, *_why: Any, **_more: Any) -> None:
        pass


def test_an_address_with_an_open_method_is_among_the_open(site: Change) -> None:
    """Whoever reads the list of open addresses would take it for gated."""
    site(path("door/", PostAlone.as_view()), path("hall/", adult(view)))
    assert [line for line in listed("--open") if line.startswith("/")] == [
        "/door/; GET; open",
        "/door/; POST; age_over_18 (redirect)",
    ]


def test_a_form_is_not_open_by_the_put_that_is_its_post(site: Change) -> None:
    site(path("door/", Form.as_view()))
    assert not [line for line in listed("--open") if line.startswith("/")]
    assert listed()[0] == "/door/; GET,POST,PUT; age_over_18 (redirect)"


@pytest.mark.parametrize(
    ("door", "asked"),
    [
        (Preview, "GET; age_over_18 (redirect); Preview.dispatch()"),
        (
            PreviewBeforeMixin,
            "age_over_18 (redirect), country_resident=NG (redirect); "
            "PreviewBeforeMixin.dispatch()",
        ),
        (DecoratedMixin, "age_over_18 (redirect)"),
        (Hurried, "GET; age_over_18 (redirect); Hurried.initial()"),
        (Reporting, "age_over_18 (forbid); Reporting.permission_denied()"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_own_code_that_may_answer_before_a_gate_is_named(
    site: Change, door: Any, asked: str
) -> None:
    site(path("door/", door.as_view()))
    assert listed()[0].endswith(f"; {asked}")
