"""Where a page sends the person next, and who that person is."""

from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from django_identity.sandbox.models import User


def next_address(request: HttpRequest) -> str:
    """Return the address the person came from, if it is one of ours; else nothing."""
    address = request.POST.get("next") or request.GET.get("next") or ""
    allowed = url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()})
    return address if allowed else ""


def next_or_account(request: HttpRequest) -> str:
    """Return the address the person came from, or the account page."""
    return next_address(request) or resolve_url("account")


def signed_in_user(request: HttpRequest) -> User:
    """Return the person of a page that asks for sign-in."""
    if not isinstance(request.user, User):
        raise TypeError("This page must be behind login_required.")
    return request.user
