"""The pages of a lending circle. The product needs each of the gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from django.views.generic import TemplateView
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim
from django_identity.gates import (
    KycLevelRequiredMixin,
    claim_required,
    claims_of,
    recent_sign_in_required,
)
from example_project.circle import circles
from example_project.circle.circles import FOR_ADULTS, FOR_RESIDENTS, Circle


@require_http_methods(["GET", "HEAD"])
def home(request: HttpRequest) -> HttpResponse:
    """Explain the product, how to join, and which pages are open to the person."""
    joined = circles.joined_by(request.user) if request.user.is_authenticated else []
    offers_code = request.user.is_authenticated and not claims_of(request.user)
    later = settings.DJANGO_IDENTITY.get("LATER_SCOPES", ())
    context = {
        "joined": joined,
        "offers_code": offers_code,
        "asks_documents": "documents:read" in later,
    }
    return render(request, "circle/home.html", context)


@claim_required("age_over_18")
@require_http_methods(["GET", "HEAD", "POST"])
def adults(request: HttpRequest) -> HttpResponse:
    """Only adults may join a circle. The claim does not disclose the date of birth."""
    return _circles_page(request, FOR_ADULTS, "circle/adults.html")


@claim_required("country_resident=NG", on_closed="forbid")
@require_http_methods(["GET", "HEAD", "POST"])
def residents(request: HttpRequest) -> HttpResponse:
    """Naira circles are for residents of Nigeria. The gate asks for a value."""
    return _circles_page(request, FOR_RESIDENTS, "circle/residents.html")


class Loans(KycLevelRequiredMixin, TemplateView):
    """Only people who are verified at level 2 may borrow."""

    required_kyc_level = "level_2"
    template_name = "circle/loans.html"


@recent_sign_in_required(minutes=10)
@require_http_methods(["GET", "HEAD", "POST"])
def leave(request: HttpRequest) -> HttpResponse:
    """A seat is money, so somebody who finds an open browser cannot give it up."""
    if request.method == "POST":
        if circles.leave(request.user, request.POST.get("circle", "")):
            messages.success(request, _("You have left the circle."))
        else:
            messages.error(request, _("There is no such circle."))
        return redirect(request.path)
    return render(
        request,
        "circle/leave.html",
        {"joined": circles.joined_by(request.user)},
    )


class CirclesApi(APIView):
    """``GET /api/circles/`` for the phone app of adults."""

    authentication_classes = [SessionAuthentication]
    permission_classes: Sequence[Any] = [IsAuthenticated, HasClaim("age_over_18")]
    renderer_classes = [JSONRenderer]

    def get(self, request: Request) -> Response:
        joined = {circle.slug for circle in circles.joined_by(request.user)}
        return Response(
            [
                {
                    "circle": circle.slug,
                    "amount": circle.amount,
                    "seats_left": circle.seats - circle.taken,
                    "joined": circle.slug in joined,
                }
                for circle in FOR_ADULTS
            ],
        )


def _circles_page(
    request: HttpRequest,
    offered: Sequence[Circle],
    template: str,
) -> HttpResponse:
    if request.method == "POST":
        if circles.join(request.user, request.POST.get("circle", ""), among=offered):
            messages.success(
                request,
                _("You are in. Your circle is on the front page."),
            )
        else:
            messages.error(request, _("There is no such circle."))
        return redirect(request.path)
    context = {"circles": offered, "joined": circles.joined_by(request.user)}
    return render(request, template, context)
