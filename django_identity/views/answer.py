"""The page after a refused callback and after an erasure."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from django_identity.exceptions import IdentityError
from django_identity.models import ErasureReceipt
from django_identity.web import answers, flow
from django_identity.web.pages import address_of, page


@flow.open_page("GET", "HEAD")
def answer(request: HttpRequest) -> HttpResponseBase:
    """Show what was answered, for an hour. Later it leads to the account page."""
    kept = answers.kept_by(request)
    if isinstance(kept, IdentityError):
        return flow.problem_page(request, kept)
    receipt = ErasureReceipt.objects.filter(pk=kept).first()
    if receipt is None:
        return redirect(address_of("account"))
    return page(request, "django_identity/erased.html", {"receipt": receipt})
