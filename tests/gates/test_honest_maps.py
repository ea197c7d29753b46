"""The map claims no gate that the site's own code, or another method, goes around."""

import io
from collections.abc import Callable
from pathlib import Path
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
from django_identity.gates import ClaimRequiredMixin, site_map
from tests.gates import replaced_urls
from tests.gates.gated_views import Endpoint, Page, adult, async_view, view

pytestmark = pytest.mark.urls("tests.gates.replaced_urls")

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
    output = io.StringIO()
    call_command("identity_gates", *options, stdout=output)
    return output.getvalue().splitlines()


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
    [line] = [line for line in listed("--open") if line.startswith("/")]
    assert line.endswith("  POST age_over_18 (redirect), GET open")


def test_a_form_is_not_open_by_the_put_that_is_its_post(site: Change) -> None:
    site(path("door/", Form.as_view()))
    assert not [line for line in listed("--open") if line.startswith("/")]
    asked = "GET age_over_18 (redirect), POST age_over_18 (redirect)"
    assert listed()[0].endswith(f"  {asked}, PUT age_over_18 (redirect)")


@pytest.mark.parametrize(
    ("door", "asked"),
    [
        (Preview, "GET (age_over_18 | Preview.dispatch()) (redirect)"),
        (
            PreviewBeforeMixin,
            "age_over_18 (redirect), "
            "(country_resident=NG | PreviewBeforeMixin.dispatch()) (redirect)",
        ),
        (DecoratedMixin, "age_over_18 (redirect)"),
        (Hurried, "GET (age_over_18 | Hurried.initial()) (redirect)"),
        (Reporting, "(age_over_18 | Reporting.permission_denied()) (forbid)"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_own_code_that_may_answer_before_a_gate_is_named(
    site: Change, door: Any, asked: str
) -> None:
    site(path("door/", door.as_view()))
    assert listed()[0].endswith(f"  {asked}")


def reported(view: Callable[..., Any], *, to: Callable[..., Any] | None = None) -> Any:
    """A decorator of a site, without ``wraps``. A name that its closure has may not be set."""
    if to is not None:
        report = to

    def inner(request: HttpRequest) -> Any:
        answer = view(request)
        if to is not None:
            report(answer)
        return answer

    return inner


def test_a_closure_that_is_not_filled_hides_no_gate(site: Change) -> None:
    site(path("door/", reported(adult(view))))
    assert listed()[0].endswith("  age_over_18 (redirect)")


def test_a_comparison_says_where_an_earlier_pattern_could_answer(
    site: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a site that is too large to find out, an earlier pattern is no change."""
    stored = tmp_path / "gates.json"
    site(path("loans/", adult(view)))
    stored.write_text("\n".join(listed("--json")), "utf-8")
    assert not any("earlier pattern" in line for line in listed("--diff", stored))
    monkeypatch.setattr(site_map, "MOST_COMPARED", 1)
    site(path("<slug:page>/", async_view), path("loans/", adult(view)))
    assert listed("--diff", stored)[0] == (
        "not seen: whether an earlier pattern answers at 2 address(es)"
    )
