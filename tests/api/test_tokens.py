"""People whom a token names, whom pages would not know; and the gates of Django REST framework."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core import signing
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings
from django.urls import include, path
from django.utils.decorators import method_decorator
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    TokenAuthentication,
)
from rest_framework.decorators import api_view, authentication_classes
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAdminUser, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from django_identity.api import views
from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    claim_required,
    closed_response,
    closed_to,
)
from django_identity.models import AuthorizationRequest, LinkedIdentity
from tests.factories import make_claim, make_identity, make_user
from tests.gates.gated_views import Endpoint, api_answer_of
from tests.sign_in import come_back, is_signed_in, sign_in, signed_in_as

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class ByHeader(BaseAuthentication):
    """``Authorization: Bearer …``."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return user_of(token) if scheme == "Bearer" else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def user_of(token: str) -> tuple[User, str]:
    try:
        return User.objects.get(pk=signing.loads(token)), token
    except signing.BadSignature:
        raise AuthenticationFailed from None


KNOWS_TOKENS: dict[str, Any] = {
    "authentication_classes": (ByHeader, SessionAuthentication),
}


class Bar(APIView):
    authentication_classes = (ByHeader,)

    def get(self, request: Request) -> Any:
        closed = closed_to(Gate("age_over_18"), request.user)
        assert closed is not None
        return closed_response(request, closed, on_closed="problem")


adult = claim_required("age_over_18", on_closed="problem")


class Who(APIView):
    authentication_classes: Any = KNOWS_TOKENS["authentication_classes"]

    def get(self, request: Request) -> Response:
        return Response(str(request.user))


class Mixed(ClaimRequiredMixin, Who):
    required_claims = ("age_over_18",)


@method_decorator(adult, name="dispatch")
class Dispatched(Who):
    pass


@method_decorator(adult, name="get")
class Handled(Who):
    pass


@api_view(["GET"])
@authentication_classes(KNOWS_TOKENS["authentication_classes"])
def who(request: Request) -> Response:
    return Response(str(request.user))


@api_view(["GET"])
@authentication_classes(KNOWS_TOKENS["authentication_classes"])
@adult
def gated_who(request: Request) -> Response:
    return Response(str(request.user))


urlpatterns = [
    path("around/function/", adult(who)),
    path("around/class/", adult(Who.as_view())),
    path("around/mixin/", Mixed.as_view()),
    path("around/dispatch/", Dispatched.as_view()),
    path("within/function/", gated_who),
    path("within/handler/", Handled.as_view()),
    path("api/login", views.LoginView.as_view(**KNOWS_TOKENS)),
    path("api/callback", views.CallbackView.as_view(**KNOWS_TOKENS)),
    path("api/me", views.MeView.as_view(**KNOWS_TOKENS)),
    path("tokens-alone/me", views.MeView.as_view(authentication_classes=(ByHeader,))),
    path("tokens-alone/bar", Bar.as_view()),
    path("", include("tests.urls")),
]


FRONT_END = "https://app.example.org/back"
OWN_PAGE = "https://shop.example.org/identity/callback/"


@pytest.fixture
def ada() -> User:
    return make_user(username="ada")


@pytest.fixture
def grace() -> User:
    return make_user(username="grace")


def token_of(user: User) -> dict[str, str]:
    return {"authorization": f"Bearer {signing.dumps(user.pk)}"}


def post(client: Client, name: str, body: object = None, **options: Any) -> Any:
    return client.post(
        f"/api/{name}",
        body or {},
        content_type="application/json",
        **options,
    )


@pytest.mark.parametrize("beside", ["nothing", "another session", "an ended session"])
@pytest.mark.parametrize(
    "redirect_uri",
    [None, OWN_PAGE],
    ids=["by request", "own page"],
)
def test_a_token_alone_is_refused_before_anybody_consents(
    service,
    client,
    ada,
    grace,
    beside,
    redirect_uri,
):
    """Else the person would come back to a page that does not know them."""
    if beside != "nothing":
        client.force_login(grace if beside == "another session" else ada)
    ada.set_password("a new password ends the session")
    ada.save()
    headers = token_of(ada)
    settings = service.settings(REDIRECT_URI=redirect_uri)
    with override_settings(DJANGO_IDENTITY=settings):
        refused = post(client, "login", {"next": "/"}, headers=headers)
    problem = refused.json()
    assert refused.status_code == 403
    assert problem["code"] == "session_needed"
    assert problem["recovery"] == "sign_in_to_link"
    assert problem["reference"]
    assert not AuthorizationRequest.objects.exists()
    assert service.requests == []


def test_a_token_beside_the_persons_own_session_links(service, client, ada):
    client.force_login(ada)
    begun = post(client, "login", {"next": "/"}, headers=token_of(ada))
    assert begun.status_code == 200
    assert come_back(client, state_in(begun))["Location"] == "/"
    assert LinkedIdentity.objects.get().user == ada


def state_in(begun: Any) -> str:
    return parse_qs(urlsplit(begun.json()["authorization_url"]).query)["state"][0]


@pytest.mark.parametrize("linked", [False, True], ids=["link", "renew"])
def test_a_page_of_the_front_end_comes_back_with_the_same_token(
    service,
    client,
    ada,
    grace,
    linked,
):
    if linked:
        make_identity(ada, subject="subject-1")
    settings = service.settings(REDIRECT_URI=FRONT_END)
    with override_settings(DJANGO_IDENTITY=settings):
        for other, code in ((token_of(grace), "user_changed"), ({}, "session_ended")):
            begun = post(client, "login", {"next": "/"}, headers=token_of(ada))
            returned = {"state": state_in(begun), "code": "a-code"}
            refused = post(client, "callback", returned, headers=other)
            assert refused.json()["code"] == code
        begun = post(client, "login", {"next": "/"}, headers=token_of(ada))
        returned = {"state": state_in(begun), "code": "a-code"}
        arrived = post(client, "callback", returned, headers=token_of(ada))
    assert arrived.json() == {"next": "/"}
    assert LinkedIdentity.objects.get().user == ada
    assert signed_in_as(client) == ""
    told = client.get("/api/me", headers=token_of(ada)).json()

    assert told["claims"] == {"age_over_18": True}


def test_nobody_is_asked_for_a_session_to_sign_in(service, client):
    assert post(client, "login", {"next": "/"}).status_code == 200
    wrong = post(client, "login", {}, headers={"authorization": "Bearer nobody's"})
    assert wrong.status_code == 401
    assert wrong.json()["code"] == "authentication_failed"


@pytest.mark.parametrize("nobody", [AnonymousUser, None])
@pytest.mark.parametrize(("path", "status"), [("me", 200), ("bar", 401)])
def test_a_session_that_an_api_does_not_know_stays_whole(
    service,
    client,
    monkeypatch,
    nobody,
    path,
    status,
):
    """To an API for tokens alone nobody is there. The browser's session has not ended by that."""
    monkeypatch.setattr(api_settings, "UNAUTHENTICATED_USER", nobody)
    sign_in(client)
    session = client.session
    session["basket"] = "full"
    session.save()
    assert client.get(f"/tokens-alone/{path}").status_code == status
    assert client.session["basket"] == "full"
    assert is_signed_in(client)


@pytest.mark.parametrize("way", ["function", "class", "mixin", "dispatch"])
def test_a_gate_around_an_endpoint_raises(client, ada, grace, way):
    """It would ask about the session, and the endpoint would serve the person of the token."""
    make_claim(make_identity(ada))
    client.force_login(ada)
    for headers in (token_of(grace), {}):
        with pytest.raises(ImproperlyConfigured, match="permission_classes"):
            client.get(f"/around/{way}/", headers=headers)


@pytest.mark.parametrize("way", ["function", "handler"])
def test_a_gate_within_an_endpoint_asks_about_whom_it_serves(client, ada, grace, way):
    make_claim(make_identity(ada))
    client.force_login(grace)
    served = client.get(f"/within/{way}/", headers=token_of(ada))
    assert served.json() == "ada"
    client.force_login(ada)
    refused = client.get(f"/within/{way}/", headers=token_of(grace))
    assert refused.status_code == 403
    assert refused.json()["code"] == "claim_missing"


# The gates of Django REST framework


def permitted(user: Any, *permissions: Any) -> Response:
    return api_answer_of(Endpoint.as_view(permission_classes=permissions), user)


def test_a_closed_permission_says_what_is_missing():
    user = make_user()
    make_identity(user)
    closed = permitted(user, IsAuthenticated, HasClaim("country_resident=NG")).data
    assert closed["detail"].code == "claim_missing"
    assert closed["detail"] == closed_to(Gate("country_resident=NG"), user).detail
    assert closed["missing"] == "country_resident=NG"
    level = HasKycLevel("level_3")
    assert permitted(user, level).data["detail"].code == "kyc_level_missing"
    assert permitted(AnonymousUser(), level).data["detail"].code == "not_signed_in"


ADULT, HIGHER = HasClaim("age_over_18"), HasKycLevel("level_3")
COMBINED = [
    (ADULT & HIGHER, False),
    (HIGHER & ADULT, False),
    (HIGHER | ADULT, True),
    (IsAdminUser | ADULT, True),
    (~HasClaim("unique_human"), True),
    (~ADULT, False),
    (~(ADULT & HIGHER), True),
    (HasClaim("age_over_18", "unique_human"), False),
]


def test_permissions_combine_as_django_rest_frameworks_own():
    request: Any = APIRequestFactory().get("/")
    request.user = make_user()
    make_claim(make_identity(request.user))
    for number, (combined, is_open) in enumerate(COMBINED):
        permission = combined()
        answers = (
            permission.has_permission(request, None),
            permission.has_object_permission(request, None, object()),
        )
        assert answers == (is_open, is_open), number


@pytest.mark.parametrize("nobody", [None, "django.contrib.auth.models.AnonymousUser"])
def test_nobody_is_told_no(nobody):
    """With ``UNAUTHENTICATED_USER = None`` too, where there is no user at all."""
    asked = {"permission_classes": [HasKycLevel("level_1")]}
    view = Endpoint.as_view(authentication_classes=[TokenAuthentication], **asked)
    with override_settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": nobody}):
        assert view(APIRequestFactory().get("/")).status_code == 401
