"""The site's own code raises, at each point where it runs: no error of it takes a person along."""

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User, UserManager
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection
from django.db.models.signals import post_delete, post_save
from django.http import HttpResponse
from django.template import Library, engines
from django.template.loaders.locmem import Loader
from django.test import AsyncRequestFactory, Client, RequestFactory, override_settings
from django.urls import reverse

from django_identity import flows, gates, signals, tasks
from django_identity.documents import documents_of
from django_identity.exceptions import FlowError, LinkingRefused, UnexpectedError
from django_identity.handlers import forget, on_event
from django_identity.models import (
    ConnectRedemption,
    ErasureReceipt,
    LinkedIdentity,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import SECRET, deliver, event_body
from tests.factories import make_claim, make_identity, make_user
from tests.sign_in import begin, come_back, sign_in
from tests.views.connect.pages import PASTED, browser_of, hand_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("as_in_production", "service"),
]

OURS = re.compile("/django_identity/|/asgiref/sync.py|/concurrent/")
PERSON = ("ada@example.org", "Obi", "subject-1", "AB12", "a-code-for-tests")


class Full(Exception):
    """Of a response, as allauth raises one."""

    response = HttpResponse("no more members", status=418)


def fail(*_given: Any, **_about: Any) -> Any:
    try:
        raise KeyError("ada@example.org Obi subject-1")
    except KeyError as cause:
        raise LookupError("ada@example.org Obi subject-1") from cause


def breaks(owner: type, name: str) -> Any:
    """A method or a property of the site's own class raises."""

    def patched(monkeypatch: pytest.MonkeyPatch) -> None:
        broken = fail if callable(getattr(owner, name)) else property(fail)
        monkeypatch.setattr(owner, name, broken)

    return patched


of_policy = partial(breaks, IdentityPolicy)


def in_template(name: str) -> Any:
    """A template of the site, with a tag of its own."""

    def patched(monkeypatch: pytest.MonkeyPatch) -> None:
        page = "{% load of_the_site %}{% fails %}"
        engine = engines["django"].engine
        loader = Loader(engine, {f"django_identity/{name}.html": page})
        loaders = [loader, *engine.template_loaders]
        monkeypatch.setattr(engine, "template_loaders", loaders)
        library = Library()
        library.simple_tag(fail, name="fails")
        monkeypatch.setitem(engine.template_libraries, "of_the_site", library)

    return patched


def signs_up(_user: User) -> Any:
    return sign_in(Client())


def signs_up_by_json(_user: User) -> Any:
    browser = Client()
    body = {"code": "a-code", "state": begin(browser)}
    address = reverse("identity_api:callback")
    return browser.post(address, body, content_type="application/json")


def links(user: User) -> Any:
    return sign_in(browser_of(user))


def hands_in(user: User) -> Any:
    return hand_in(browser_of(user))


def returns(user: User) -> Any:
    make_identity(user)
    return sign_in(Client())


def asks(method: str, name: str) -> Callable[[User], Any]:
    """A verified person asks for one of our pages."""

    def ask(user: User) -> Any:
        make_claim(make_identity(user))
        return getattr(browser_of(user), method)(reverse(f"identity:{name}"))

    return ask


posts, looks_at = partial(asks, "post"), partial(asks, "get")

#: Point -> how the site's code raises there, and what a person does.
POINTS: dict[str, tuple[Any, Callable[[User], Any]]] = {
    "may_sign_up": (of_policy("may_sign_up"), signs_up),
    "may_sign_up, by JSON": (of_policy("may_sign_up"), signs_up_by_json),
    "new_user_fields": (of_policy("new_user_fields"), signs_up),
    "account_with_email": (of_policy("account_with_email"), signs_up),
    "may_sign_in of a new person": (of_policy("may_sign_in"), signs_up),
    "may_sign_in of who returns": (of_policy("may_sign_in"), returns),
    "may_link": (of_policy("may_link"), links),
    "may_link by a code": (of_policy("may_link"), hands_in),
    "may_accept_connect_answer": (of_policy("may_accept_connect_answer"), hands_in),
    "has_other_way_in": (of_policy("has_other_way_in"), posts("disconnect")),
    "people_may_erase": (of_policy("people_may_erase"), posts("erase")),
    "claim_value": (of_policy("claim_value"), looks_at("account")),
    "a tag in a page": (in_template("account"), looks_at("account")),
    "erasure": (of_policy("erasure"), looks_at("erase")),
    "set_password_url": (of_policy("set_password_url"), looks_at("disconnect")),
    "normalize_email": (breaks(UserManager, "normalize_email"), signs_up),
    "create_user": (breaks(UserManager, "create_user"), signs_up),
    "clean": (breaks(User, "clean"), signs_up),
    "save": (breaks(User, "save"), signs_up),
    "has_usable_password": (breaks(User, "has_usable_password"), posts("disconnect")),
}

#: What is only logged: the person comes in. An erasure stays pending.
GO_ON = {
    "update_user": (returns, "identity.user_update.failed"),
    "notice": (signs_up, "identity.link_notice.failed"),
    "keeps_account": (posts("erase"), "identity.erasure.failed"),
    "erase_user": (posts("erase"), "identity.erasure.failed"),
}
#: On each page, also on that of an error.
URLS = ("site_name", "help_url", "privacy_url", "contact_url")
OF_PAGES = {**dict.fromkeys(URLS, "account"), "reasons": "login"}


def report_of(error: BaseException) -> str:
    """What a tracker prints of our frames and of all causes, and of the threads of async code."""
    shown = [repr(error), repr(error.__cause__), repr(error.__context__)]
    for frame, _line in traceback.walk_tb(error.__traceback__):
        if OURS.search(frame.f_code.co_filename):
            shown += [repr(value) for value in frame.f_locals.values()]
    return "\n".join(shown)


def names_nobody(text: str) -> bool:
    return not [word for word in PERSON if word in text]


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """The log, but for the traceback by which Django tells of an error that leaves a view."""
    ours = [each for each in caplog.records if each.name != "django.request"]
    return "\n".join(map(caplog.handler.format, ours))


@pytest.fixture
def the_line(caplog: pytest.LogCaptureFixture) -> Callable[..., Any]:
    """The only line that says where the site's code failed. The log names nobody."""

    def find(event: str = "identity.unexpected") -> Any:
        [line] = [each for each in caplog.records if hasattr(each, "where")]
        assert line.event == event
        assert names_nobody(logged(caplog))
        return line

    return find


@pytest.mark.parametrize("point", POINTS)
def test_a_person_sees_one_page_with_a_reference(monkeypatch, the_line, caplog, point):
    """The log has one line and one text with it, of no person, and nothing half is stored."""
    break_it, act = POINTS[point]
    user = make_user("other", email="other@example.org")
    break_it(monkeypatch)

    response = act(user)

    assert response.status_code == 500
    text = the_line()
    assert text.reference in response.content.decode()
    failed = [each for each in caplog.records if hasattr(each, "code")]
    [line] = [each for each in failed if each.code == "unexpected_error"]
    assert line.reference == text.reference
    assert text.error == "LookupError"
    assert "KeyError\n" in text.where
    assert f"{__file__}, line" in text.where
    assert "in fail" in text.where
    assert User.objects.count() == 1
    assert not LinkedIdentity.objects.exclude(user=user).exists()
    if act in (links, hands_in):
        assert not LinkedIdentity.objects.exists()


def test_a_table_of_the_sites(the_line):
    """The message of a database may have a row's values."""

    def lacks_a_column(run: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT") and "auth_user" in sql:
            raise ProgrammingError("no column for ada@example.org")
        return run(sql, *rest)

    with connection.execute_wrapper(lacks_a_column):
        assert sign_in(Client()).status_code == 500
    the_line()


@pytest.mark.parametrize(
    ("method", "status", "event"),
    [
        ("may_sign_up", 500, "identity.unexpected"),
        ("update_user", 302, "identity.user_update.failed"),
    ],
)
def test_a_query_of_the_sites(monkeypatch, the_line, method, status, event):
    """Is no database that does not answer: SQLite and MySQL have one class for both."""
    if method == "update_user":
        make_identity(make_user("ada"))

    def ask(*_given: Any, **_about: Any) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column FROM auth_user")
        return True

    monkeypatch.setattr(IdentityPolicy, method, ask)

    assert sign_in(Client()).status_code == status
    the_line(event)


@contextmanager
def receiving(signal: Any, receiver: Any = fail, **how: Any) -> Iterator[None]:
    signal.connect(receiver, **how)
    try:
        yield
    finally:
        signal.disconnect(receiver, **how)


@pytest.mark.parametrize(
    ("signal", "sender", "comes_in"),
    [
        (post_save, User, False),
        (post_save, LinkedIdentity, False),
        (signals.identity_linked, None, True),
    ],
    ids=["of a user", "of an identity", "ours"],
)
def test_a_receiver(the_line, signal, sender, comes_in):
    """One of a signal of ours holds nobody up."""
    with receiving(signal, sender=sender):
        assert sign_in(Client()).status_code == (302 if comes_in else 500)
    the_line()
    assert User.objects.exists() is comes_in


def test_a_code_is_ended(monkeypatch):
    """The next try is told so at once, and not for ten minutes that it is in use."""
    of_policy("may_link")(monkeypatch)
    browser = browser_of(make_user("other"))
    assert hand_in(browser).status_code == 500
    assert ConnectRedemption.objects.get().outcome == "unexpected_error"
    assert "connect_code_used" in hand_in(browser).content.decode()


def test_a_handler(the_line, service, settings):
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    make_identity(make_user())
    on_event("claim.issued", name="fails")(fail)
    try:
        deliver("claim.issued")
        tasks.run_handlers(WebhookEvent.objects.get().pk)
    finally:
        forget("fails")

    line = the_line("identity.event.handler_failed")
    assert line.handler == "fails"
    assert "in fail" in line.where


@pytest.mark.parametrize("method", GO_ON)
def test_what_is_only_logged(monkeypatch, the_line, method):
    act, event = GO_ON[method]
    of_policy(method)(monkeypatch)

    user = make_user("other", email="" if act is signs_up else "ada@example.org")
    assert act(user).status_code == 302

    assert "in fail" in the_line(event).where
    assert not ErasureReceipt.objects.exclude(erased_at=None).exists()


# Calls that end in an error of ours


def read_documents(user: User) -> object:
    request = RequestFactory().get("/")
    request.user = user
    return documents_of(request)


def in_async_code(work: Callable[..., Any]) -> Callable[..., object]:
    """No frame of asgiref has the arguments."""

    def call(*given: Any) -> object:
        async def ask() -> object:
            return await work(*given)

        return async_to_sync(ask)()

    return call


def ask_an_async_view(user: User) -> object:
    @gates.claim_required("age_over_18")
    async def adults(request: Any) -> HttpResponse:
        return HttpResponse()

    async def auser() -> User:
        return user

    request: Any = AsyncRequestFactory().get("/")
    request.user, request.auser = user, auser
    return in_async_code(adults)(request)


ADULTS = gates.Gate("age_over_18")
#: A method of the policy, and what calls it.
CALLS: dict[str, tuple[str, Callable[[User], object]]] = {
    "documents_of": ("may_read_documents", read_documents),
    "claims_of": ("claim_value", gates.claims_of),
    "claims_of_all": ("claim_value", lambda user: gates.claims_of_all([user])),
    "closed_to": ("claim_value", lambda user: gates.closed_to(ADULTS, user)),
    "aclaims_of": ("claim_value", in_async_code(gates.aclaims_of)),
    "aclosed_to": ("claim_value", in_async_code(partial(gates.aclosed_to, ADULTS))),
    "standing_of": (
        "claim_value",
        lambda user: flows.standing_of(user).proven_claims(),
    ),
    "redeem_code": (
        "may_accept_connect_answer",
        lambda user: flows.redeem_code(PASTED, user=user),
    ),
    "a view": ("claim_value", lambda user: browser_of(user).get("/gated/")),
    "an async view": ("claim_value", ask_an_async_view),
}


def test_each_point_of_the_policy_is_in_a_table():
    points = {point.partition(" ")[0].rstrip(",") for point in POINTS}
    called = {method for method, _call in CALLS.values()}
    of_policy = {name for name in vars(IdentityPolicy) if not name.startswith("_")}
    assert of_policy <= points | called | {*GO_ON, *OF_PAGES}


@pytest.fixture
def person():
    """Somebody whose name and address are those that no report may have."""
    user = make_user("subject-1-ada@example.org", email="ada@example.org")
    make_claim(make_identity(user))
    return user


@pytest.fixture
def fails(the_line: Any) -> Callable[..., None]:
    """The call ends in one error of ours, in whose report is no person."""

    def check(call: Callable[..., object], *given: Any) -> None:
        with pytest.raises(UnexpectedError) as caught:
            call(*given)
        assert names_nobody(report_of(caught.value))
        assert the_line().reference in str(caught.value)

    return check


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_asks_the_policy(monkeypatch, fails, person, call):
    method, work = CALLS[call]
    of_policy(method)(monkeypatch)
    fails(work, person)


@pytest.mark.parametrize("name", ["is_active", "get_session_auth_hash", "from_db"])
def test_the_user_of_a_session(monkeypatch, fails, person, name):
    """The backend loads them for each view of the site, where no page of ours stands around."""
    browser = Client()
    sign_in(browser)
    broken: Any = property(fail, lambda *_given: None) if name == "is_active" else fail
    monkeypatch.setattr(User, name, broken)
    fails(browser.get, "/")


def test_a_page_of_djangos_admin(monkeypatch, fails, person):
    browser = browser_of(User.objects.create_superuser("operator"))
    breaks(User, "get_username")(monkeypatch)
    fails(browser.get, reverse("admin:django_identity_linkedidentity_changelist"))


@pytest.mark.parametrize("name", OF_PAGES)
def test_a_page_that_cannot_be_shown(monkeypatch, caplog, name):
    """Nor can the page of its error: Django answers, and its report has nobody."""
    of_policy(name)(monkeypatch)
    with pytest.raises(UnexpectedError) as caught:
        looks_at(OF_PAGES[name])(make_user("ada@example.org"))
    assert names_nobody(report_of(caught.value))
    assert names_nobody(logged(caplog))


def deliver_unsigned(_user: User) -> None:
    flows.receive_event(event_body("claim.issued"), signature="none")


#: What the policy calls -> whether the person comes in all the same.
CALLED_BACK: dict[str, tuple[Callable[[User], object], bool]] = {
    "standing_of": (flows.standing_of, True),
    "claims_of": (gates.claims_of, True),
    "erase_account": (flows.erase_account, False),
    "redeem_code": (lambda user: flows.redeem_code(PASTED, user=user), False),
    "receive_event": (deliver_unsigned, False),
}


@pytest.mark.parametrize("call", CALLED_BACK)
def test_a_policy_that_calls_back(monkeypatch, call):
    work, comes_in = CALLED_BACK[call]

    def call_back(_policy: object, user: User, **_about: object) -> bool:
        work(user)
        return True

    monkeypatch.setattr(IdentityPolicy, "may_sign_in", call_back)
    make_identity(make_user("other"))
    browser = Client(raise_request_exception=False)

    sign_in(browser)

    assert (browser.get("/").content == b"other") is comes_in
    assert LinkedIdentity.objects.exists() is (call != "erase_account")


def test_a_command(monkeypatch, the_line, person):
    monkeypatch.setattr(User, "from_db", classmethod(fail))
    with pytest.raises(CommandError, match="LookupError, reference") as caught:
        call_command("identity_erase", "subject-1", yes=True)
    assert caught.value.returncode == 1
    assert names_nobody(the_line().where + str(caught.value))


def test_a_command_that_deletes_links(the_line):
    make_identity(make_user(email="ada@example.org"), environment="live")
    with (
        receiving(post_delete, sender=LinkedIdentity),
        pytest.raises(CommandError, match="LookupError, reference"),
    ):
        call_command("identity_erase", links_of="live", yes=True)
    the_line()
    assert LinkedIdentity.objects.count() == 1


def test_a_filter_in_a_template_of_the_sites(monkeypatch, the_line, person):
    """It shows what stands behind the closed gate."""
    of_policy("claim_value")(monkeypatch)
    page = "{% load identity %}{% if user|has_claim:'age_over_18' %}open{% endif %}"
    assert engines["django"].from_string(page).render({"user": person}) == ""
    the_line()


@pytest.mark.parametrize(("error", "status"), [(PermissionDenied, 403), (Full, 418)])
def test_what_is_an_answer_passes(monkeypatch, caplog, error, status):
    """Django's, or a response that a package raises for its own middleware."""

    def answer(*_given: Any, **_about: Any) -> bool:
        raise error

    monkeypatch.setattr(IdentityPolicy, "may_sign_up", answer)
    browser = Client()
    state = begin(browser)
    with nullcontext() if status == 403 else pytest.raises(Full):
        assert come_back(browser, state).status_code == status
    assert not [each for each in caplog.records if hasattr(each, "where")]


def test_in_debug_it_is_seen(monkeypatch):
    of_policy("may_sign_up")(monkeypatch)
    with override_settings(DEBUG=True), pytest.raises(LookupError):
        sign_in(Client())


def test_a_refusal_leaves_without_its_frames():
    """An error of ours from a public call has no frame either, and none of its causes."""

    def refuse(**_about: Any) -> None:
        raise IntegrityError("ada@example.org")

    user = make_user(email="ada@example.org")
    with pytest.raises(FlowError) as caught:
        flows.redeem_code("not a code AB12", user=user)
    assert names_nobody(report_of(caught.value))

    with (
        receiving(post_save, refuse, sender=LinkedIdentity),
        pytest.raises(LinkingRefused) as refused,
    ):
        flows.redeem_code(PASTED, user=user)
    assert names_nobody(report_of(refused.value))
