"""No way around a gate: who lacks one thing stays outside, and so does everybody when it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template, TemplateSyntaxError
from django.test import RequestFactory, override_settings
from django.utils import timezone
from django.views import View

from django_identity.api.permissions import HasClaim, HasKycLevel
from django_identity.gates import (
    ClaimRequiredMixin,
    Gate,
    KycLevelRequiredMixin,
    claim_required,
    kyc_level_required,
)
from django_identity.lifecycle.standing import UNASKED, Requirement
from django_identity.models import Consent, LinkedIdentity, StoredClaim
from django_identity.policy import IdentityPolicy
from tests.faces.gated import ASKED, SECRET, SHAPES, TAG, WAYS, Page, answer_of, by_template, view
from tests.records import LONG_AGO, make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db

every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def user() -> User:
    """Somebody for whom every gate is open."""
    person = make_user()
    identity = make_identity(person)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return person


def claim(name: str, **changes: Any) -> Callable[[], Any]:
    return lambda: StoredClaim.objects.filter(claim_type=name).update(**changes)


def identity(**changes: Any) -> Callable[[], Any]:
    return lambda: LinkedIdentity.objects.update(**changes)


A_MINUTE_AGO = timezone.now() - timedelta(minutes=1)
LACKS: dict[str, Callable[[], Any]] = {
    "the claim": lambda: StoredClaim.objects.filter(claim_type="age_over_18").delete(),
    "a claim that is true": claim("age_over_18", value=False),
    "a claim whose answer is yes": claim("age_over_18", value={"verified": True, "value": False}),
    "a claim with an answer": claim("age_over_18", value={"verified": True, "value": None}),
    "a claim that is not revoked": claim("age_over_18", revoked=True),
    "a claim that holds": claim("age_over_18", valid_until=A_MINUTE_AGO),
    "a claim that is proven": claim("age_over_18", valid_until=None),
    "the value": claim("country_resident", value="GH"),
    "a value that is verified": claim("country_resident", value={"verified": False, "value": "NG"}),
    "the level": identity(kyc_level="level_1"),
    "any level": identity(kyc_level=""),
    "a level that is verified": identity(kyc_status="rejected"),
    "a level that somebody vouches for": identity(kyc_checked_at=None),
    "a level that still holds": identity(kyc_checked_at=LONG_AGO),
    "consent": identity(consent=Consent.REVOKED),
    "a sign-in since the revocation": identity(revoked_at=timezone.now()),
    "this application": identity(application="other"),
    "this environment": identity(environment="live"),
    "an identity": lambda: LinkedIdentity.objects.all().delete(),
}


@every_way
def test_who_has_all_comes_in(way: Any, user: User) -> None:
    """Without this the rest would prove nothing."""
    assert SECRET in way(user)


@every_way
@pytest.mark.parametrize("lacking", LACKS.values(), ids=LACKS)
def test_who_lacks_one_thing_stays_outside(way: Any, user: User, lacking: Any) -> None:
    """Each requirement is asked, however many stand beside it and wherever they were declared."""
    lacking()
    assert SECRET not in way(user)


def nobody(user: User) -> Any:
    return AnonymousUser()


def none(user: User) -> Any:
    """What ``UNAUTHENTICATED_USER = None`` gives, and a template without a user."""
    return None


def device(user: User) -> Any:
    """A principal of another kind, with the number of a user."""
    return SimpleNamespace(pk=user.pk, id=user.pk, is_authenticated=True)


def group(user: User) -> Any:
    """A record of another table, with the number of a user."""
    found = Group(pk=user.pk, name="a group")
    found.is_authenticated = True
    return found


def unsaved(user: User) -> Any:
    return User(username="ada")


@every_way
@pytest.mark.parametrize("stranger", [nobody, none, device, group, unsaved])
def test_a_stranger_stays_outside(way: Any, user: User, stranger: Any) -> None:
    """Only a user of the site has a standing, and no number is taken for theirs."""
    try:
        answer = way(stranger(user))
    except AttributeError:
        answer = b""
    assert SECRET not in answer


class Behind(IdentityPolicy):
    """A site whose devices act for their owners."""

    def user_of_principal(self, principal: Any) -> Any:
        return getattr(principal, "owner", "nobody")


@every_way
def test_a_site_may_say_whom_a_principal_stands_for(way: Any, user: User) -> None:
    """By its policy, which must name a user; anything else is nobody."""
    setting = {**settings.DJANGO_IDENTITY["default"], "POLICY": f"{__name__}.Behind"}
    principal = device(user)
    with override_settings(DJANGO_IDENTITY={"default": setting}):
        assert SECRET not in way(principal)
        principal.owner = user
        assert SECRET in way(principal)


def failing_database(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    raise OperationalError("the database has gone away")


@every_way
def test_a_database_that_fails_opens_nothing(way: Any, user: User) -> None:
    """A view raises, a template takes the other branch."""
    with connection.execute_wrapper(failing_database):
        try:
            answer = way(user)
        except OperationalError:
            answer = b""
    assert SECRET not in answer


@every_way
def test_a_cache_that_fails_changes_nothing(way: Any, user: User) -> None:
    """No gate rests on it."""
    broken = {"default": {"BACKEND": "tests.service.broken_cache.BrokenCache"}}
    with override_settings(CACHES=broken):
        assert SECRET in way(user)
        LACKS["the claim"]()
        assert SECRET not in way(user)


@every_way
@pytest.mark.parametrize("given", [{}, {"POLICY": "nowhere.Policy"}], ids=["no key", "no policy"])
def test_settings_that_are_wrong_open_nothing(way: Any, user: User, given: Any) -> None:
    """Whatever the gate would have said."""
    with override_settings(DJANGO_IDENTITY={"default": given}):
        try:
            answer = way(device(user))
        except Exception:  # noqa: BLE001  any error closes it
            answer = b""
    assert SECRET not in answer


# Templates

FILTERS = [
    'user|has_claim:""', 'user|has_claim:2', 'user|has_claim:"country_resident="',
    "user|has_kyc_level:2", 'user|has_kyc_level:""', "user|has_claim:user",
    'missing|has_claim:"age_over_18"', 'request|has_claim:"age_over_18"',
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("asked", FILTERS)
def test_a_filter_that_cannot_answer_says_no(
    user: User, shape: str, asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Under ``not``, ``or`` and ``==`` too, where Django takes an exception for false."""
    way = by_template(SHAPES[shape].format(asked, asked, asked))
    with caplog.at_level(logging.ERROR, "django_identity.gates"):
        assert SECRET not in way(user)
    assert "a gate in a template stays closed" in caplog.text


in_templates = pytest.mark.parametrize(
    "source", [TAG, *(each.format(*ASKED) for each in SHAPES.values())], ids=["tag", *SHAPES]
)


@pytest.mark.django_db(transaction=True)
@in_templates
def test_an_async_view_renders_a_gate(user: User, source: str) -> None:
    """Open to who has all, closed to who lacks one thing, although Django would not ask there."""
    way = by_template(source)

    async def page() -> bytes:
        return way(user)

    assert SECRET in asyncio.run(page())
    LACKS["the value"]()
    assert SECRET not in asyncio.run(page())


TAGS = [
    "missing", '""', "2", "user", "none", '"age_over_18" level=missing', '"age_over_18" level=2',
    '"age_over_18" level=none', 'level="level_2" application="nowhere"', '"age_over_18" missing',
    '"age_over_18" user=missing', '"age_over_18" user=none', '"age_over_18" user=device',
]  # fmt: skip


@pytest.mark.parametrize("given", TAGS)
def test_a_tag_that_cannot_answer_shows_the_other_part(user: User, given: str) -> None:
    """An argument that is not there, of another type or empty keeps it closed."""
    source = (
        "{% load identity %}{% identity_gate ARGS %}secret{% else %}denied{% end_identity_gate %}"
    )
    context = Context({"user": user, "none": None, "device": device(user)})
    assert Template(source.replace("ARGS", given)).render(context) == "denied"


def test_a_tag_without_a_second_part_shows_nothing(user: User) -> None:
    """And what it shows is rendered with the page's context."""
    source = '{% load identity %}{% identity_gate "NAME" %}{{ user }}{% end_identity_gate %}'
    shown = [
        Template(source.replace("NAME", name)).render(Context({"user": user}))
        for name in ("age_over_18", "unique_human")
    ]
    assert shown == ["ada", ""]


def test_a_page_about_somebody_else_asks_about_who_reads_it(user: User) -> None:
    """The request's user comes before one whom the page calls ``user``."""
    request = HttpRequest()
    request.user = make_user("eve")
    source = Template("{% load identity %}" + TAG)
    assert source.render(Context({"user": user, "request": request})) == "denied"
    request.user = user
    assert source.render(Context({"user": make_user("bola"), "request": request})) == "secret"


@pytest.mark.parametrize("given", ["", "user=user", '"age_over_18" with="x"'])
def test_a_tag_that_asks_for_nothing_is_a_mistake(given: str) -> None:
    """Found when the template is read."""
    with pytest.raises(TemplateSyntaxError):
        Template("{% load identity %}{% identity_gate " + given + " %}{% end_identity_gate %}")


EXTENDING = "{% extends base %}{% load identity %}"
GATED = '{% identity_gate "age_over_18" %}IN{% else %}denied{% end_identity_gate %}'
BLOCK = "{% block part %}IN{% endblock %}"


def test_a_tag_around_a_block_of_an_extending_template_is_a_mistake() -> None:
    """Django shows the block where its parent has it, without what stands around."""
    in_block = GATED.replace("IN", "secret")
    with pytest.raises(TemplateSyntaxError, match="inside the block"):
        Template(EXTENDING + GATED.replace("IN", BLOCK.replace("IN", "secret")))
    base = Template("{% block part %}{% endblock %}")
    page = Template(EXTENDING + BLOCK.replace("IN", in_block))
    assert page.render(Context({"base": base, "user": AnonymousUser()})) == "denied"
    around = Template("{% load identity %}" + GATED.replace("IN", "{% block part %}{% endblock %}"))
    page = Template("{% extends base %}" + BLOCK.replace("IN", "secret"))
    assert page.render(Context({"base": around, "user": AnonymousUser()})) == "denied"


# What a gate may be made of

NO_TEXT = [None, "", "  ", 2, True, (), ["level_2"], view]


@pytest.mark.parametrize("given", NO_TEXT)
def test_a_gate_asks_for_text_and_nothing_else(given: Any) -> None:
    """A setting that is not there would open it to everybody."""
    for make in (
        lambda: claim_required(given),
        lambda: claim_required("age_over_18", given),
        lambda: claim_required("country_resident", value=given),
        lambda: kyc_level_required(given),
        lambda: HasClaim(given),
        lambda: HasClaim("country_resident", value=given),
        lambda: HasKycLevel(given),
        lambda: Gate((Requirement("age_over_18"),), kyc_level=given),
        lambda: Gate((given,)),
    ):
        with pytest.raises(ImproperlyConfigured):
            make()


def test_a_gate_that_asks_for_nothing_is_a_mistake() -> None:
    """However it is written."""
    for make in (Gate, claim_required, lambda: Gate(()), lambda: Gate("age_over_18")):
        with pytest.raises(ImproperlyConfigured):
            make()


@pytest.mark.parametrize(
    "attributes",
    [
        {"required_claims": ()},
        {"required_claims": None},
        {"required_claims": "age_over_18"},
        {"required_claims": ("age_over_18", None)},
        {"required_claims": ("country_resident",), "required_value": None},
        {"required_claims": ("age_over_18",), "required_kyc_level": None},
        {"required_claims": ("age_over_18",), "get_gate": lambda self: None},
        {"required_claims": ("age_over_18",), "on_closed": None},
        {"required_claims": ("age_over_18",), "on_closed": "forbidden"},
    ],
)
def test_a_class_must_ask_for_text(user: User, attributes: dict[str, Any]) -> None:
    """Nobody comes in, and the site's developer sees why."""
    gated = type("Gated", (ClaimRequiredMixin, Page), attributes).as_view()
    with pytest.raises(ImproperlyConfigured):
        answer_of(gated, user)


@pytest.mark.parametrize("mixin", [ClaimRequiredMixin, KycLevelRequiredMixin])
def test_a_mixin_that_asks_for_nothing_is_a_mistake(user: User, mixin: Any) -> None:
    """Beside one that does, too."""

    class Gated(mixin, Page):
        pass

    asked = {"required_kyc_level": "level_2"} | {"required_claims": ("age_over_18",)}
    del asked["required_claims" if mixin is ClaimRequiredMixin else "required_kyc_level"]
    other = KycLevelRequiredMixin if mixin is ClaimRequiredMixin else ClaimRequiredMixin
    for bases in ((Gated,), (other, Gated)):
        with pytest.raises(ImproperlyConfigured):
            answer_of(type("View", bases, asked if len(bases) > 1 else {}).as_view(), user)


def test_permissions_have_no_truth() -> None:
    """``and`` would drop one of two permissions, and say nothing."""
    adult, verified = HasClaim("age_over_18"), HasKycLevel("level_2")
    for combine in (
        lambda: adult and verified,
        lambda: adult or verified,
        lambda: not adult,
        lambda: (adult & verified) and adult,
        lambda: (Page and adult | verified) or adult,
        lambda: not ~adult,
    ):
        with pytest.raises(TypeError, match="combine permissions"):
            combine()


# What a closed gate answers


def answer(request: HttpRequest, closed: Any) -> HttpResponse:
    return HttpResponse(closed.missing, status=418)


def test_a_function_may_answer_for_a_class(user: User) -> None:
    """As a class attribute it is called as a decorator's would be; a method has its view."""

    class Gated(ClaimRequiredMixin, Page):
        required_claims = ("unique_human",)
        on_closed = answer

    class Own(Gated):
        def on_closed(self, request: HttpRequest, closed: Any) -> HttpResponse:
            return HttpResponse(f"{type(self).__name__} {closed.missing}")

    class Static(Gated):
        on_closed = staticmethod(answer)

    assert answer_of(Gated.as_view(), user).content == b"unique_human"
    assert answer_of(Static.as_view(), user).content == b"unique_human"
    assert answer_of(Own.as_view(), user).content == b"Own unique_human"


# Two applications


@pytest.fixture
def two_applications() -> Any:
    default = settings.DJANGO_IDENTITY["default"]
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        yield


class FirstMixin(ClaimRequiredMixin):
    required_claims = ("age_over_18",)


class SecondMixin(KycLevelRequiredMixin):
    required_kyc_level = "level_2"
    identity_application = "second"


class SecondAdults(FirstMixin):
    identity_application = "second"


OF_BOTH = {
    "decorators": claim_required("age_over_18")(
        kyc_level_required("level_2", application="second")(view)
    ),
    "mixins": type("Mixins", (FirstMixin, SecondMixin, Page), {}).as_view(),
    "mixins, turned round": type("Turned", (SecondMixin, FirstMixin, Page), {}).as_view(),
    "decorator around mixin": claim_required("age_over_18")(
        type("Around", (SecondMixin, Page), {}).as_view()
    ),
}


@pytest.mark.usefixtures("two_applications")
@pytest.mark.parametrize("gated", OF_BOTH.values(), ids=OF_BOTH)
def test_each_requirement_is_of_its_own_application(user: User, gated: Any) -> None:
    """What one application was told does not stand in for what the other was not."""
    assert SECRET not in answer_of(gated, user).content
    second = make_identity(user, application="second", kyc_level="level_1")
    make_claim(second)
    assert SECRET not in answer_of(gated, user).content
    LinkedIdentity.objects.filter(pk=second.pk).update(kyc_level="level_2")
    assert SECRET in answer_of(gated, user).content
    StoredClaim.objects.exclude(identity=second).delete()
    assert SECRET not in answer_of(gated, user).content


@pytest.mark.usefixtures("two_applications")
def test_a_subclass_may_ask_another_application(user: User) -> None:
    """An application that is named alone goes with what the parent asks for."""
    gated = type("Second", (SecondAdults, Page), {}).as_view()
    assert SECRET not in answer_of(gated, user).content
    make_claim(make_identity(user, application="second"))
    assert SECRET in answer_of(gated, user).content


@pytest.mark.usefixtures("two_applications")
def test_a_tag_asks_about_its_application(user: User) -> None:
    """And a permission, too."""
    source = TAG.replace('level="level_2"', 'level="level_2" application="second"')
    assert SECRET not in by_template(source)(user)
    second = make_identity(user, application="second")
    make_claim(second)
    make_claim(second, "country_resident", "NG")
    assert SECRET in by_template(source)(user)


@pytest.mark.django_db(transaction=True)
def test_an_async_gate_judges_the_person_whom_the_view_sees() -> None:
    """A middleware may replace ``request.user`` alone, for a token or for impersonation."""
    proven = make_user("proven")
    make_claim(make_identity(proven))

    @claim_required("age_over_18", on_closed="forbid")
    async def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse(SECRET)

    async def auser() -> User:
        return proven

    request: Any = RequestFactory().get("/", headers={"Accept": "application/json"})
    request.auser, request.user = auser, make_user("unproven")
    assert asyncio.run(page(request)).status_code == 403


@pytest.mark.parametrize("value", [UNASKED, "DE"])
def test_a_subclass_cannot_replace_the_value_of_its_base(rf: RequestFactory, value: Any) -> None:
    """A requirement is added to, and never taken away."""

    class Local(ClaimRequiredMixin, View):
        required_claims = ("country_resident",)
        required_value = "NG"

    page = type("Elsewhere", (Local,), {"required_value": value}).as_view()
    request: Any = rf.get("/")
    request.user = AnonymousUser()
    with pytest.raises(ImproperlyConfigured):
        page(request)
