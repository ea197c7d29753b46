"""Sign-in, sign-out and changing the account."""

from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from django_identity.sandbox.pages.forms import NewPersonForm, SignInForm
from django_identity.sandbox.pages.navigation import next_address, next_or_account
from django_identity.sandbox.users import cast


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Offer the cast; sign a person in and send them to where they were going."""
    if request.method == "GET" and request.user.is_authenticated:
        return redirect(next_or_account(request))
    form = SignInForm(request, request.POST or None)
    if form.is_valid():
        login(request, form.user)
        return redirect(next_or_account(request))
    context = {
        "form": form,
        "next": next_address(request),
        "cast": [(user, cast.described(user)) for user in cast.listed()],
        "password": cast.PASSWORD,
    }
    return render(request, "sandbox/sign_in.html", context)


@require_POST
def continue_as(request: HttpRequest) -> HttpResponse:
    """Sign in as one of the cast, without a password."""
    user = cast.find(request.POST.get("person", ""))
    if user is None:
        messages.error(request, _("That test person is gone. Choose another one."))
        return redirect(resolve_url("sign_in") + "?" + urlencode({"next": next_address(request)}))
    login(request, user)
    return redirect(next_or_account(request))


@require_http_methods(["GET", "POST"])
def make_person(request: HttpRequest) -> HttpResponse:
    """Make a test person as the developer wants one, and sign in as that person."""
    form = NewPersonForm(request.POST or None)
    if form.is_valid():
        login(request, cast.make(form.member()))
        return redirect(next_or_account(request))
    context = {"form": form, "next": next_address(request), "password": cast.PASSWORD}
    return render(request, "sandbox/make_person.html", context)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("sign_in")


@require_POST
def switch_account(request: HttpRequest) -> HttpResponse:
    """End the session and ask for another account, on the way to the same place."""
    destination = next_or_account(request)
    logout(request)
    return redirect(resolve_url("sign_in") + "?" + urlencode({"next": destination}))
