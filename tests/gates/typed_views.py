"""A decorated view keeps its type: mypy reads this file (``tox -e types``)."""

from typing import assert_type

from django.http import HttpRequest, HttpResponse

from django_identity.gates import (
    claim_required,
    kyc_level_required,
    recent_sign_in_required,
    scope_required,
)


@claim_required("age_over_18")
@kyc_level_required("level_2", on_closed="forbid")
def page(request: HttpRequest, number: int) -> HttpResponse:
    return HttpResponse(str(number))


@scope_required("documents:read")
@recent_sign_in_required(minutes=10)
async def async_page(request: HttpRequest, *, number: int = 1) -> HttpResponse:
    return HttpResponse(str(number))


async def calls(request: HttpRequest) -> None:
    """What is right, and what mypy must refuse: an unneeded ``ignore`` is an error."""
    assert_type(page(request, 7), HttpResponse)
    assert_type(await async_page(request, number=7), HttpResponse)
    page(request, "seven")  # type: ignore[arg-type]
    page(request)  # type: ignore[call-arg]
    await async_page(request, 7)  # type: ignore[call-arg]
