"""No way around a gate: who lacks one thing stays outside, and so does everybody when it fails."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import django
import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template, TemplateSyntaxError
from django.test import RequestFactory
from django.utils.decorators import method_decorator

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    aclaims_of,
    claim_required,
    kyc_level_required,
)
from tests.factories import again, make_identity, make_user
from tests.gates.gated_views import (
    ASKED,
    LACKS,
    SECRET,
    SHAPES,
    TAG,
    WAYS,
    AsyncPage,
    Page,
    VerifiedMixin,
    adult,
    answer_of,
    async_view,
    by_template,
    view,
)

pytestmark = pytest.mark.django_db

FEW = {
    name: WAYS[name]
    for name in ("decorators, async", "mixins", "permissions", "tag", "filters, if not")
}


def opened_by(ways: dict[str, Any], person: Any) -> list[str]:
    """The ways by which ``person`` comes in."""
    return [name for name, way in ways.items() if SECRET in answered(way, person)]


def answered(way: Any, person: Any) -> bytes:
    try:
        content: bytes = way(person)
    except (AttributeError, OperationalError, ImproperlyConfigured):
        return b""
    return content


BROKEN_CACHE = {"default": {"BACKEND": "tests.broken_cache.BrokenCache"}}


@pytest.mark.parametrize("lacking", LACKS)
def test_who_lacks_one_thing_stays_outside(user, settings, lacking):
    """Who has all comes in, or the rest would prove nothing. No gate rests on a cache."""
    settings.CACHES = BROKEN_CACHE
    ways = WAYS if lacking in ("the level", "a claim that is not revoked") else FEW
    assert opened_by(ways, user) == list(ways)
    LACKS[lacking]()
    assert opened_by(ways, again(user)) == []


def device(user: User) -> Any:
    """A principal of another kind, with the number of a user."""
    known = {"is_authenticated": True, "is_active": True}
    return SimpleNamespace(pk=user.pk, id=user.pk, **known)


STRANGERS: dict[str, Callable[[User], Any]] = {
    "nobody": lambda user: AnonymousUser(),
    # What ``UNAUTHENTICATED_USER = None`` gives, and a template without a user.
    "none": lambda user: None,
    "device": device,
    "group": lambda user: Group(pk=user.pk, name="a group"),
    "unsaved": lambda user: User(username="ada"),
}


def test_a_stranger_stays_outside(user):
    """Only a user of the site has a standing, and no number is taken for theirs."""
    for name, stranger in STRANGERS.items():
        assert opened_by(FEW, stranger(user)) == [], name


def failing_database(
    execute: Any,
    sql: str,
    params: Any,
    many: bool,
    context: Any,
) -> Any:
    raise OperationalError("the database has gone away")


def test_a_database_that_fails_opens_nothing(user):
    """A view raises, a template takes the other branch."""
    with connection.execute_wrapper(failing_database):
        assert opened_by(FEW, user) == []


@pytest.mark.parametrize("given", [{}, {"POLICY": "nowhere.Policy"}])
def test_settings_that_are_wrong_open_nothing(user, settings, given):
    settings.DJANGO_IDENTITY = given
    assert opened_by(FEW, user) == []


FILTERS = [
    'user|has_claim:""',
    "user|has_claim:2",
    'user|has_claim:"country_resident="',
    "user|has_kyc_level:2",
    'user|has_kyc_level:""',
    "user|has_claim:user",
    'missing|has_claim:"age_over_18"',
    'request|has_claim:"age_over_18"',
]


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        *(("if not", asked) for asked in FILTERS),
        *((shape, FILTERS[0]) for shape in SHAPES),
    ],
)
def test_a_filter_that_cannot_answer_says_no(user, shape, asked, caplog):
    """Under ``not``, ``or`` and ``==`` too, where Django takes an exception for false."""
    way = by_template(SHAPES[shape].format(asked, asked, asked))
    with caplog.at_level(logging.ERROR, "django_identity"):
        assert SECRET not in way(user)
    assert "identity.gate.failed" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "source",
    [TAG, SHAPES["if not"].format(*ASKED)],
    ids=["tag", "filters"],
)
def test_an_async_view_renders_a_gate_after_it_asked(user, source):
    way = by_template(source)

    async def page(person: User, *, asks: bool) -> bytes:
        if asks:
            await aclaims_of(person)
        return way(person)

    assert SECRET not in asyncio.run(page(again(user), asks=False))
    assert SECRET in asyncio.run(page(again(user), asks=True))
    LACKS["the level"]()
    assert SECRET not in asyncio.run(page(again(user), asks=True))


TAGS = [
    "missing",
    '""',
    "2",
    "user",
    "none",
    '"age_over_18" level=missing',
    '"age_over_18" level=2',
    '"age_over_18" level=none',
    '"age_over_18" missing',
    'level="level_2" user=missing',
    'level="level_2" user=none',
    'level="level_2" user=device',
]


def test_a_tag_that_cannot_answer_shows_the_other_part(user):
    source = (
        "{% load identity %}"
        "{% identity_gate ARGS %}secret{% else %}denied{% end_identity_gate %}"
    )
    context = Context({"user": user, "none": None, "device": device(user)})
    for given in TAGS:
        template = Template(source.replace("ARGS", given))
        assert template.render(context) == "denied", given


def test_a_page_about_somebody_else_asks_about_who_reads_it(user):
    """The request's user comes before one whom the page calls ``user``."""
    request = HttpRequest()
    request.user = make_user("eve")
    source = Template("{% load identity %}" + TAG)
    assert source.render(Context({"user": user, "request": request})) == "denied"
    request.user = user
    bola = Context({"user": make_user("bola"), "request": request})
    assert source.render(bola) == "secret"


@pytest.mark.parametrize("given", ["", "user=user", '"a" application="default"'])
def test_a_tag_that_asks_for_nothing_is_a_mistake(given):
    gate = f"{{% identity_gate {given} %}}{{% end_identity_gate %}}"
    with pytest.raises(TemplateSyntaxError):
        Template("{% load identity %}" + gate)


EXTENDING = "{% extends base %}{% load identity %}"
GATED = '{% identity_gate level="level_2" %}IN{% else %}denied{% end_identity_gate %}'
BLOCK = "{% block part %}IN{% endblock %}"
#: What Django also shows without what stands around it. From Django 6.0 on there are partials.
SHOWN_ALONE = [BLOCK]
if django.VERSION >= (6, 0):
    partial = "{% partialdef part inline %}IN{% endpartialdef %}"
    SHOWN_ALONE += [partial, f"{{% if user %}}{partial}{{% endif %}}"]


@pytest.mark.parametrize("part", SHOWN_ALONE)
def test_a_tag_around_a_block_or_a_partial_is_a_mistake(part):
    """In a template that extends another, a block is shown; as ``page.html#part``, a partial."""
    around = GATED.replace("IN", part.replace("IN", "secret"))
    for before in (EXTENDING, "{% load identity %}"):
        with pytest.raises(TemplateSyntaxError, match="Put it inside"):
            Template(before + around)
    base = Template("{% block part %}{% endblock %}")
    page = Template(EXTENDING + BLOCK.replace("IN", GATED.replace("IN", "secret")))
    assert page.render(Context({"base": base, "user": AnonymousUser()})) == "denied"


class Door(ClaimRequiredMixin, Page):
    required_claims = [None]


@pytest.mark.parametrize("make", [claim_required, Gate, HasClaim])
def test_the_error_says_what_and_where(make):
    with pytest.raises(ImproperlyConfigured) as raised:
        make(None)
    said = str(raised.value)
    assert "A gate cannot ask for None." in said
    assert 'such as "age_over_18" or "country_resident=PT|FR"' in said
    assert "test_gates_closed.py, line " in said
    with pytest.raises(ImproperlyConfigured, match=r"closed\.Door\.required_claims: "):
        Door().gates()


def test_a_template_that_asks_wrongly_logs_no_value(user, caplog):
    """The argument may be what somebody has typed."""
    source = "{% load identity %}{% if user|has_claim:typed %}open{% endif %}"
    context = Context({"user": user, "typed": "a secret |of Ada"})
    assert Template(source).render(context) == ""
    assert "Only the values of one claim are alternatives" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        Gate,
        claim_required,
        HasClaim,
        HasKycLevel,
        kyc_level_required,
        lambda given: claim_required("age_over_18", given),
        lambda given: Gate(scope=given),
    ],
    ids=[
        "gate",
        "decorator",
        "permission",
        "level permission",
        "level",
        "second",
        "scope",
    ],
)
def test_a_gate_asks_for_text_and_nothing_else(make):
    """A setting that is not there would open it to everybody."""
    for given in (None, "", "  ", 2, True, (), ["level_2"], view):
        with pytest.raises(ImproperlyConfigured):
            make(given)


@pytest.mark.parametrize("make", [Gate, claim_required, HasClaim])
def test_a_gate_that_asks_for_nothing_or_two_things_is_a_mistake(make):
    for given in ((), ("country_resident=",), ("=NG",)):
        with pytest.raises(ImproperlyConfigured):
            make(*given)
    for minutes in (-1, "ten", None):
        with pytest.raises(ImproperlyConfigured):
            Gate(minutes=minutes)
    with pytest.raises(ImproperlyConfigured, match=r"\. Write a gate for each\.$"):
        Gate("age_over_18", kyc_level="level_2")


@pytest.mark.parametrize("thing", [Page, ([], "shop", "shop"), None], ids=repr)
def test_a_gate_stands_around_a_view(thing):
    """A class or an ``include()`` would fail at a request, and not say why."""
    with pytest.raises(ImproperlyConfigured, match="For a class use a mixin"):
        claim_required("age_over_18")(thing)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        *(
            {"required_claims": asked}
            for asked in (
                (),
                None,
                "age_over_18",
                ("age_over_18", None),
                property(lambda self: ("a",)),
            )
        ),
        *(
            {"required_claims": ("age_over_18",), "on_closed": given}
            for given in (None, "forbidden")
        ),
    ],
)
def test_a_class_must_ask_for_text(user, attributes):
    alone = (ClaimRequiredMixin, Page)
    for bases in (alone, (VerifiedMixin, *alone)):
        gated = type("Gated", bases, attributes).as_view()
        with pytest.raises(ImproperlyConfigured):
            answer_of(gated, user)


@method_decorator(adult, name="dispatch")
class Dispatched(AsyncPage):
    pass


@pytest.mark.parametrize(
    "hidden",
    [adult(lambda request: async_view(request)), Dispatched.as_view()],
    ids=["a sync decorator between", "dispatch of an async class"],
)
def test_a_sync_gate_around_an_async_view_raises(user, hidden):
    with pytest.raises(ImproperlyConfigured, match="async"):
        answer_of(hidden, user)


@pytest.mark.django_db(transaction=True)
def test_an_async_gate_judges_the_person_whom_the_view_sees():
    """A middleware may replace ``request.user`` alone, for a token or for impersonation."""
    proven = make_user("proven")
    make_identity(proven)

    @kyc_level_required("level_2", on_closed="forbid")
    async def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse(SECRET)

    async def auser() -> User:
        return proven

    request: Any = RequestFactory().get("/", headers={"Accept": "application/json"})
    request.auser, request.user = auser, make_user("unproven")
    assert asyncio.run(page(request)).status_code == 403
