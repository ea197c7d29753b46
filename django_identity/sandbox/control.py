"""The control API under /sandbox/: JSON, for tests. Not part of the service.

A view takes the parts of its path, and the members of the request's body as keyword arguments.
``members`` is the table of what a body may hold: the view's keyword arguments, and those of what it
passes the rest to. A member without a default is required. A wrong, missing or unknown member is a
400 with its name.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import RequestFactory
from django.urls import URLPattern, get_resolver, path, reverse
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.scopes import get_scopes_backend

from django_identity.sandbox import (
    callers,
    claims,
    clock,
    connect,
    consents,
    envelope,
    faults,
    keys,
    request_log,
    switches,
)
from django_identity.sandbox.developer import applications
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events import event as events
from django_identity.sandbox.models import (
    Application,
    Claim,
    Client,
    ConnectCode,
    Delivery,
    Environment,
    KycLevel,
    User,
)
from django_identity.sandbox.oauth.endpoints import AuthorizationPage
from django_identity.sandbox.people import accounts, verification

JSON = dict[str, Any] | list[Any]
View = Callable[..., Any]
V = TypeVar("V", bound=View)
Members = dict[str, Any]
#: Stand for a member that was not sent.
ABSENT: Any = object()
NO_MEMBERS: Members = {}
NO_TEXTS: list[str] = []
#: Of whole numbers; the database has no larger ones.
LARGEST = 2**31 - 1
_FORBIDDEN = (
    "The control API answers this machine, or who sends --control-token as Bearer."
)
_KINDS: dict[Any, tuple[Any, str]] = {
    str: (str, "a string"),
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    int | None: (int | None, "a whole number or null"),
    float: (int | float, "a number"),
    Members: (dict, "an object"),
    list[str]: (list, "a list of strings"),
}
_views: dict[str, dict[str, tuple[View, dict[str, inspect.Parameter]]]] = {}


def control(
    method: str, route: str, passed_to: View | type | None = None
) -> Callable[[V], V]:
    """Register a view for a method and an address below /sandbox/."""

    def register(view: V) -> V:
        members: dict[str, inspect.Parameter] = {}
        if passed_to is not None:
            members |= inspect.signature(passed_to).parameters
        for name, parameter in inspect.signature(view).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                members[name] = parameter
        _views.setdefault(route, {})[method] = (view, members)
        return view

    return register


def urlpatterns() -> list[URLPattern]:
    """Return the addresses, the longest first: a user id may hold slashes."""
    routes = sorted(_views, key=len, reverse=True)
    return [path(route, _answer(_views[route])) for route in routes]


def _answer(views: Mapping[str, tuple[View, dict[str, inspect.Parameter]]]) -> Any:
    @csrf_exempt
    def answer(request: HttpRequest, **parts: object) -> HttpResponse:
        if not callers.may_control(request):
            return _refuse(403, "FORBIDDEN", _FORBIDDEN)

        method = request.method or ""
        if method == "HEAD":
            method = "GET"
        view, members = views.get(method, (None, {}))

        if view is None:
            return _refuse(
                405, envelope.METHOD_NOT_ALLOWED, f"Use {' or '.join(views)}."
            )
        try:
            sent = _read(envelope.members_of(request, labelled=False), members)
            return JsonResponse(view(**parts, **sent), safe=False)
        except ObjectDoesNotExist as error:
            return _refuse(404, envelope.NOT_FOUND, str(error))
        except Invalid as error:
            return _refuse(400, envelope.INVALID_REQUEST, str(error))

    return answer


def _refuse(status: int, code: str, message: str) -> HttpResponse:
    """Refuse with a message, whatever the switches say of the service's errors."""
    content = {"success": False, "error": {"code": code, "message": message}}
    return JsonResponse(content, status=status)


def _read(sent: Members, members: Mapping[str, inspect.Parameter]) -> Members:
    """Return the members of a body if each is in the table, and none is missing."""
    for name in sent.keys() - members.keys():
        raise Invalid(f"{name} is no member; it takes {', '.join(members) or 'none'}.")
    for name, parameter in members.items():
        if parameter.default is parameter.empty and name not in sent:
            raise Invalid(f"{name} is missing.")
    return {
        name: _value(name, value, members[name].annotation)
        for name, value in sent.items()
    }


def _value(name: str, value: Any, kind: Any) -> Any:
    """Return ``value`` if it is of the annotated ``kind``."""
    if kind is Any:
        return value
    if kind in (date, datetime):
        return _moment(name, value, kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = [member.value for member in kind]
        if value not in words:
            raise Invalid(f"{name} is one of {', '.join(words)}.")
        return kind(value)

    expected, description = _KINDS[kind]
    is_right = isinstance(value, expected)
    # True and False are whole numbers in Python.
    if isinstance(value, bool):
        is_right = kind is bool
    elif isinstance(value, int) and kind is not float:
        is_right = is_right and 0 <= value <= LARGEST
    elif isinstance(value, list):
        is_right = is_right and all(isinstance(text, str) for text in value)
    if not is_right:
        raise Invalid(f"{name} must be {description}.")
    return value


def _moment(name: str, value: Any, kind: Any) -> Any:
    """Return a day, or a moment with its offset."""
    examples = {date: "1990-01-31", datetime: "2030-01-31T12:00:00Z"}
    try:
        moment = kind.fromisoformat(value)
        if kind is datetime and moment.tzinfo is None:
            raise ValueError("No offset.")
    except (TypeError, ValueError) as error:
        raise Invalid(f"{name} must be like {examples[kind]}.") from error
    return moment


def _user(user_id: str) -> User:
    """Return the person, or raise ``ObjectDoesNotExist``."""
    user = User.objects.filter(subject=user_id).first()
    if user is None:
        raise ObjectDoesNotExist("There is no such user.")
    return user


def _client(client_id: str) -> Client:
    """Return the credential set, or raise ``ObjectDoesNotExist``."""
    return Client.objects.select_related("registered").get(client_id=client_id)


# Applications


@control("POST", "applications")
def register_application(
    *,
    redirect_uris: list[str],
    name: str = "Example shop",
    client_secrets: Members = NO_MEMBERS,
) -> JSON:
    """Register one and show its secrets this once."""
    if not redirect_uris or any(len(uri.split()) != 1 for uri in redirect_uris):
        raise Invalid("redirect_uris needs at least one address, without spaces.")
    for mode, secret in client_secrets.items():
        if mode not in Environment.values or not isinstance(secret, str):
            raise Invalid("client_secrets has strings for test and live.")
    application, issued = applications.register(name, redirect_uris, client_secrets)
    secrets = {
        mode: {"client_id": client_id, "client_secret": client_secret}
        for mode, (client_id, client_secret) in issued.items()
    }
    return show_application(application.app_id) | secrets


@control("GET", "applications")
def list_applications() -> JSON:
    """List them without secrets."""
    return [
        show_application(application.app_id)
        for application in Application.objects.all()
    ]


@control("GET", "applications/<uuid:app_id>")
def show_application(app_id: UUID) -> Members:
    """Show one without secrets."""
    shown = Application.objects.get(app_id=app_id)
    return {
        "app_id": str(shown.app_id),
        "name": shown.name,
        "clients": dict(shown.client_set.values_list("environment", "client_id")),
        "kyc_level": shown.connect_kyc_level,
        "proof_of_address": shown.connect_proof_of_address,
        "trusted": shown.document_key is not None,
        "document_key": shown.document_key,
    }


@control("POST", "applications/<uuid:app_id>/connect-policy")
def change_policy(
    app_id: UUID, *, kyc_level: KycLevel = ABSENT, proof_of_address: bool = ABSENT
) -> JSON:
    """Require something else of people with a Connect code; what is left out stays."""
    sent = {
        "connect_kyc_level": kyc_level,
        "connect_proof_of_address": proof_of_address,
    }
    changed = {name: value for name, value in sent.items() if value is not ABSENT}
    Application.objects.filter(app_id=app_id).update(**changed)
    return show_application(app_id)


@control("POST", "applications/<uuid:app_id>/trusted-tier")
def approve_as_trusted(app_id: UUID, *, document_key: Members) -> JSON:
    """Approve it with its public ``document_key``."""
    applications.change_document_key(
        Application.objects.get(app_id=app_id), document_key
    )
    return show_application(app_id)


@control("DELETE", "applications/<uuid:app_id>/trusted-tier")
def end_trusted_tier(app_id: UUID) -> JSON:
    """Go back to the standard tier."""
    applications.change_document_key(Application.objects.get(app_id=app_id), None)
    return show_application(app_id)


@control("POST", "applications/<uuid:app_id>/webhook")
def set_webhook(
    app_id: UUID,
    *,
    mode: Environment = Environment.TEST,
    url: str = "",
    secret: str = "",
) -> JSON:
    """Say where events go, and the secret that signs them. An empty ``url`` ends the sending.

    Without ``secret`` the present one stays; the first is made up.
    """
    client = Client.objects.get(registered__app_id=app_id, environment=mode)
    applications.register_webhook(client, url, secret=secret)
    return {"mode": mode, "url": client.webhook_url, "secret": client.webhook_secret}


# People


PROFILE = ["profile:read"]


@control("POST", "authorizations")
def decide(
    *, url: str, user_id: str, deny: bool = False, decline: list[str] = NO_TEXTS
) -> JSON:
    """Sign ``user_id`` in at the address ``url``, and approve or deny; return the callback address.

    ``decline``: scopes of documents that the person leaves out of an approval. What the consent
    screen would refuse on a page of its own is refused here.
    """
    address = urlsplit(url).path
    user = _user(user_id)
    if address != reverse("authorize"):
        raise Invalid(f"url: {address} is not the authorization endpoint.")
    if not user.is_active:
        raise Invalid(
            "user_id: the account is closed, as its person asked for deletion."
        )
    button = "deny" if deny else "allow"
    request = RequestFactory().post(url, {button: "1", "decline": decline})
    request.user = user
    answer = AuthorizationPage.as_view()(request)
    if answer.status_code != 302:
        raise Invalid(
            "url: the person would see an error page; open it in a browser to read it."
        )
    return {"callback": answer["Location"]}


@control("POST", "users", accounts.Account)
def create_user(
    *, verified: bool = False, proof_of_address: bool = False, **account: Any
) -> JSON:
    """Create an account and show its password this once."""
    try:
        with transaction.atomic():
            user, password = accounts.create_user(accounts.Account(**account))
    except IntegrityError as error:
        raise Invalid("email or subject is taken.") from error
    if verified:
        verification.verify(user, verification.BVN_VERIFIED)
    if proof_of_address:
        verification.prove_address(user)
    return {**show_user(user.subject), "password": password}


@control("GET", "users/<path:user_id>")
def show_user(user_id: str) -> Members:
    """Show an account as the service sees it; codes and notices newest first."""
    user = _user(user_id)
    return {
        "user_id": user.subject,
        "environment": user.environment,
        "email": user.email,
        "kyc_level": user.kyc_level,
        "kyc_status": user.kyc_status,
        "proof_of_address": user.address_proved_at is not None,
        "deletion_requested": not user.is_active,
        "claims": {claim.claim_type: _claim(claim) for claim in claims.listed(user)},
        "consents": {
            granted.client.client_id: granted.scopes
            for granted in consents.granted(user)
        },
        "connect_codes": [_code(code) for code in user.connectcode_set.all()],
        "notices": [notice.scopes for notice in user.notice_set.all()],
        "emails": [email for email in consents.emails if email["to"] == [user.email]],
    }


def _claim(claim: Claim) -> Members:
    return {
        "value": claim.value,
        "revoked": claim.revoked,
        "expires_at": claim.expires_at,
    }


def _code(code: ConnectCode) -> Members:
    return {
        "code": code.code,
        "state": code.state,
        "expires_at": clock.timestamp(code.expires_at),
        "used_by": getattr(code.used_by, "client_id", None),
        "refusal": code.refusal or None,
    }


@control("POST", "users/<path:user_id>/verify")
def verify_user(user_id: str, *, bvn: str) -> JSON:
    """Do what the verification page does."""
    user = _user(user_id)
    outcome = verification.verify(user, bvn)
    return {
        "outcome": outcome,
        "kyc_status": user.kyc_status,
        "kyc_level": user.kyc_level,
    }


@control("POST", "users/<path:user_id>/invalidate")
def invalidate_verification(user_id: str) -> JSON:
    """Let the vendor take the verification back."""
    verification.invalidate(_user(user_id))
    return show_user(user_id)


@control("POST", "users/<path:user_id>/proof-of-address")
def prove_address(user_id: str, *, proved: bool = True) -> JSON:
    """Do what the verification page does; or take it back."""
    verification.prove_address(_user(user_id), proved=proved)
    return show_user(user_id)


@control("POST", "users/<path:user_id>/deletion")
def request_deletion(user_id: str) -> JSON:
    """Do what the account page does."""
    consents.request_deletion(_user(user_id))
    return show_user(user_id)


@control("POST", "users/<path:user_id>/claims/<str:claim_type>/revoke")
def revoke_claim(user_id: str, claim_type: str) -> JSON:
    """Do what the account page does."""
    if not claims.revoke(_user(user_id), claim_type):
        raise ObjectDoesNotExist("The person has no such active claim.")
    return {"claim_type": claim_type, "revoked": True}


@control("POST", "users/<path:user_id>/claims/<str:claim_type>/issue")
def issue_claim(user_id: str, claim_type: str) -> JSON:
    """Do what the account page does."""
    return {"claim_type": claim_type} | _claim(claims.issue(_user(user_id), claim_type))


@control("POST", "users/<path:user_id>/claims/<str:claim_type>")
def change_claim(
    user_id: str, claim_type: str, *, value: Any = ABSENT, expires_at: Any = ABSENT
) -> JSON:
    """Give a claim another value or expiry."""
    claim = Claim.objects.get(user=_user(user_id), claim_type=claim_type)
    if value is not ABSENT:
        claim.value = value
    if expires_at is not ABSENT:
        claim.expires_at = None
        if expires_at:
            claim.expires_at = _moment("expires_at", expires_at, datetime)
    claim.save()
    return {"claim_type": claim_type} | _claim(claim)


@control("POST", "users/<path:user_id>/consents/<str:client_id>/grant")
def grant_consent(user_id: str, client_id: str, *, scopes: list[str] = PROFILE) -> JSON:
    """Record an approval, with no screen."""
    user = _user(user_id)
    client = _client(client_id)
    if client.environment != user.environment:
        raise Invalid("The person and the application are of different environments.")
    served = get_scopes_backend().get_available_scopes(application=client)
    unserved = [scope for scope in scopes if scope not in {*served, *connect.SCOPES}]
    if unserved:
        raise Invalid(
            f"scopes: nothing serves {', '.join(unserved)} to this application."
        )
    return {
        "client_id": client_id,
        "scopes": consents.grant(user, client, scopes).scopes,
    }


@control("POST", "users/<path:user_id>/consents/<str:client_id>/revoke")
def revoke_consent(user_id: str, client_id: str) -> JSON:
    """Do what the account page does."""
    if not consents.revoke(_user(user_id), client_id):
        raise ObjectDoesNotExist("The person has given that application no consent.")
    return {"client_id": client_id, "revoked": True}


@control("POST", "connect-codes")
def make_code(*, user_id: str) -> JSON:
    """Do what the account page does after asking for the password."""
    return _code(connect.make_code(_user(user_id)))


# Events


@control("POST", "events")
def send_event(
    *,
    client_id: str,
    event_type: str,
    event_id: str = "",
    timestamp: str = "",
    user_id: str = "",
    data: Members = NO_MEMBERS,
) -> JSON:
    """Send an event that nothing caused, with any type, id, time and data."""
    client = _client(client_id)
    if not client.webhook_url:
        raise Invalid("client_id: the application has no webhook address.")
    event_id = event_id or events.new_event_id()
    timestamp = timestamp or events.timestamp(clock.now())
    text = events.body(event_type, event_id, timestamp, user_id, data)
    try:
        with transaction.atomic():
            queued = deliveries.queue(client, event_id, event_type, user_id, text)
    except UnicodeEncodeError as error:
        raise Invalid("Half a surrogate pair cannot be sent as UTF-8.") from error
    return _delivery(queued)


@control("GET", "deliveries")
def list_deliveries() -> JSON:
    """List all of them with their attempts, in the order they were made."""
    return [
        _delivery(delivery) for delivery in Delivery.objects.select_related("client")
    ]


@control("DELETE", "deliveries")
def forget_deliveries() -> JSON:
    """Forget all, the waiting and the held ones too."""
    Delivery.objects.all().delete()
    return []


@control("POST", "deliveries/<int:delivery_id>/send")
def send_delivery_again(delivery_id: int) -> JSON:
    """Do what the button "Send again" does."""
    delivery = Delivery.objects.get(pk=delivery_id)
    deliveries.send_again(delivery)
    delivery.refresh_from_db()
    return _delivery(delivery)


@control("POST", "deliveries/hold")
def hold_deliveries(*, client_id: str) -> JSON:
    """Keep back what happens for an application from now on."""
    deliveries.hold(_client(client_id))
    return {"held": True}


@control("POST", "deliveries/release")
def release_deliveries(*, client_id: str, backwards: bool = False) -> JSON:
    """Send what was held, in the order of its causes or backwards."""
    released = deliveries.release(_client(client_id), backwards=backwards)
    return {"held": False, "released": released}


def _delivery(delivery: Delivery) -> Members:
    return {
        "id": delivery.pk,
        "client_id": delivery.client.client_id,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "user_id": delivery.user_id,
        "body": delivery.body,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "created_at": delivery.created_at,
        "next_attempt_at": delivery.next_attempt_at,
    }


# What lives in the process: clock, keys, switches, faults, requests


@control("GET", "health")
def health() -> JSON:
    """Answer that the sandbox is ready."""
    return {"status": "ready"}


@control("GET", "clock")
def show_clock() -> JSON:
    """Show the sandbox's time and how far it is from real time."""
    return {
        "now": clock.now(),
        "offset_seconds": clock.offset().total_seconds(),
    }


@control("POST", "clock")
def move_clock(
    *,
    advance: float = ABSENT,
    offset: float = ABSENT,
    set: datetime = ABSENT,
    reset: bool = False,
) -> JSON:
    """``advance`` by seconds, ``set`` to a moment, or ``reset`` to real time.

    ``offset``: seconds by which the clock is ahead of real time; a negative number: behind.
    """
    if [advance, offset, set].count(ABSENT) != 2 + reset:
        raise Invalid("Send one of advance, offset, set and reset.")
    if advance is not ABSENT:
        clock.advance(advance)
    elif offset is not ABSENT:
        clock.differ(offset)
    elif reset:
        clock.differ(0)
    else:
        clock.set_to(set)
    deliveries.wake()
    return show_clock()


@control("GET", "keys")
def show_keys() -> JSON:
    """Show the key that signs, and all that are published."""
    published = [key["kid"] for key in keys.published()["keys"]]
    return {"signing": keys.current().kid, "published": published}


@control("POST", "keys/rotate")
def rotate_keys() -> JSON:
    """Let a new key sign; the old one stays published."""
    keys.rotate()
    return show_keys()


@control("POST", "keys/withdraw")
def withdraw_key(*, kid: str) -> JSON:
    """Take a key out of publication at once."""
    if not keys.withdraw(kid):
        raise ObjectDoesNotExist("No such key is published.")
    return show_keys()


@control("GET", "switches")
def show_switches() -> JSON:
    """Show all of them."""
    return asdict(switches.current())


@control("POST", "switches", switches.Switches)
def change_switches(**values: Any) -> JSON:
    """Set those that are named."""
    return asdict(switches.change(values))


@control("GET", "faults")
def list_faults() -> JSON:
    """List those still to come."""
    return faults.ordered()


@control("POST", "faults", faults.Fault)
def order_fault(*, endpoint: str = "", **members: Any) -> JSON:
    """Order one."""
    if endpoint and endpoint not in get_resolver().reverse_dict:
        raise Invalid("endpoint: there is no endpoint of that name.")
    return asdict(faults.order(faults.Fault(endpoint=endpoint, **members)))


@control("DELETE", "faults")
def cancel_faults() -> JSON:
    """Forget all."""
    faults.cancel()
    return []


@control("GET", "requests")
def list_requests() -> JSON:
    """List what the service received."""
    return request_log.received()


@control("DELETE", "requests")
def forget_requests() -> JSON:
    """Empty the log."""
    request_log.forget()
    return []
