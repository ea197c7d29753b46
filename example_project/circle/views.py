"""The pages of a lending circle."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.generic import TemplateView

from django_identity.gates import KycLevelRequiredMixin, claim_required


def home(request: HttpRequest) -> HttpResponse:
    return render(request, "circle/home.html")


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    """Only adults may join a circle."""
    return render(request, "circle/adults.html")


class Loans(KycLevelRequiredMixin, TemplateView):
    """Only people who are verified at level 2 may borrow."""

    required_kyc_level = "level_2"
    template_name = "circle/loans.html"
