"""Anonymising: no field that it knows says who it was, and it names those it does not know."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import pytest
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.validators import validate_email
from django.db import connection, models
from django.db.models import Case, Q, UniqueConstraint, Value, When
from django.db.models.functions import Coalesce, Lower

from django_identity.anonymisation import anonymise, cannot_blank
from django_identity.policy import IdentityPolicy

pytestmark = pytest.mark.django_db(transaction=True)

PORTRAIT_OF_ALL = "portraits/nobody.png"
CARD = UUID("12345678-1234-1234-1234-123456789abc")
HERS: dict[str, Any] = {
    "born_on": date(1815, 12, 10),
    "seen_at": datetime(2026, 3, 1, 9, tzinfo=UTC),
    "height": Decimal("1.63"),
    "points": 7,
    "bio": "Wrote the first program.",
}


class Member(AbstractBaseUser):
    """A user of whom most must be said, and whose fields only rules keep apart, in many ways.

    Some rules name columns in passing: in a generated one, or in a condition.
    """

    handle = models.CharField(max_length=64)
    email = models.EmailField()
    country = models.CharField(max_length=2, default="NG")
    nickname = models.CharField(max_length=64)
    key_of_nickname = models.GeneratedField(
        expression=Lower("nickname"),
        output_field=models.CharField(max_length=64),
        db_persist=True,
        unique=True,
    )
    locker = models.CharField(max_length=5, unique=True)
    phone = models.CharField(max_length=20, null=True)  # noqa: DJ001  sites do
    badge = models.CharField(max_length=20)
    house = models.CharField(max_length=20)
    room = models.CharField(max_length=8)
    club = models.CharField(max_length=8)
    role = models.CharField(
        max_length=8,
        choices=[("host", "Host"), ("guest", "Guest")],
    )
    seat = models.IntegerField(default=0)
    floor = models.IntegerField(default=0)
    flat = models.IntegerField(default=0)
    citizen_number = models.BigIntegerField(unique=True)
    portrait = models.FileField(upload_to="portraits", default=PORTRAIT_OF_ALL)
    born_on = models.DateField()
    seen_at = models.DateTimeField()
    height = models.DecimalField(max_digits=4, decimal_places=2, null=True)
    points = models.IntegerField(default=0)
    bio = models.TextField()
    shoe_size = models.PositiveSmallIntegerField()
    card = models.UUIDField()
    sees_all = models.BooleanField(default=False)
    has_left = models.BooleanField(default=False)
    joined_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "handle"

    class Meta:
        app_label = "tests"
        unique_together = [("house", "born_on")]
        constraints: ClassVar = [
            UniqueConstraint(fields=["handle"], name="member_handle"),
            UniqueConstraint(Lower("email"), name="member_email"),
            UniqueConstraint(Coalesce("phone", Value("")), name="member_phone"),
            UniqueConstraint(
                fields=["badge"],
                condition=Q(has_left=False),
                name="member_badge",
            ),
            UniqueConstraint(fields=["floor", "flat"], name="member_flat"),
            UniqueConstraint(
                Case(When(~Q(club=""), then="room")),
                condition=Q(role="guest", has_left=False),
                name="member_room",
            ),
            UniqueConstraint(fields=["role", "seat"], name="member_seat"),
        ]

    def __str__(self) -> str:
        return self.handle


class Courier(Member):
    """Some members are couriers, with a table of their own."""

    address = models.CharField(max_length=99)
    licence = models.FileField(upload_to="licences")
    van = models.IntegerField()

    class Meta:
        app_label = "tests"


class Cyclist(Courier):
    bicycle = models.CharField(max_length=99)

    class Meta:
        app_label = "tests"


MODELS = (Member, Courier, Cyclist)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Django does by itself for models of installed apps."""
    monkeypatch.setattr(
        Member,
        "delete",
        lambda user: Cyclist.objects.filter(pk=user.pk).delete(),
    )
    for parent, child in ((Member, Courier), (Courier, Cyclist)):
        link = child._meta.parents[parent]
        assert link is not None
        monkeypatch.setitem(vars(parent._meta), "related_objects", (link.remote_field,))


@pytest.fixture(autouse=True)
def tables(settings: Any, tmp_path: Any) -> Iterator[None]:
    settings.MEDIA_ROOT = tmp_path
    with connection.schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)
    yield
    with connection.schema_editor() as editor:
        for model in reversed(MODELS):
            editor.delete_model(model)


TEXTS = ("handle", "nickname", "phone", "badge", "house", "room", "club", "locker")
#: Of numbers and choices that must be apart there is no neutral value.
KEPT = ("role", "seat", "floor", "flat", "citizen_number", "shoe_size", "card")


def make_member(
    name: str,
    number: int,
    model: type[Member] = Member,
    **more: Any,
) -> Member:
    apart = dict.fromkeys(("citizen_number", "floor", "flat", "seat"), number)
    return model._default_manager.create(
        **dict.fromkeys(TEXTS, name[:5]),
        **apart,
        **HERS,
        **more,
        email=f"{name}@example.org",
        role="guest",
        shoe_size=37,
        card=CARD,
        sees_all=True,
    )


def test_what_is_known_says_nothing():
    """Texts, dates, what may be empty and what has a default; flags and the creation date stay.

    A check names a required number, for which no neutral value is known.
    """
    ada = make_member("ada", 18151210)
    before = {name: getattr(ada, name) for name in (*KEPT, "joined_at", "sees_all")}

    anonymise(ada)

    ada.refresh_from_db()
    assert [name for name, value in HERS.items() if getattr(ada, name) == value] == []
    assert "ada" not in {getattr(ada, name) for name in TEXTS}
    assert ada.email != "ada@example.org"
    assert ada.born_on == date(1900, 1, 1)
    validate_email(ada.email)
    assert {name: getattr(ada, name) for name in before} == before
    assert sorted(cannot_blank(Member)) == sorted(KEPT)


def test_what_must_be_unique_stays_so():
    """However short it is, and whatever rule keeps it apart."""
    for number in range(1, 6):
        anonymise(make_member(f"{number}-ada", number))
    names = ("email", *TEXTS)
    left = {name: {*Member.objects.values_list(name, flat=True)} for name in names}
    assert [name for name, values in left.items() if len(values) != 5] == []


class Deleting(IdentityPolicy):
    erasure = "delete"


@pytest.mark.parametrize("policy", [IdentityPolicy, Deleting])
def test_the_files_go_whatever_becomes_of_the_account(policy):
    """A deleted row leaves its files behind; the one of whoever brought none is everybody's."""
    default_storage.save(PORTRAIT_OF_ALL, ContentFile(b"nobody"))
    ada, grace = make_member("ada", 1), make_member("grace", 2)
    ada.portrait.save("ada.png", ContentFile(b"ada"))
    for member in (ada, grace):
        policy().erase_user(member)
    assert default_storage.listdir("portraits")[1] == ["nobody.png"]


@pytest.mark.parametrize("policy", [IdentityPolicy, Deleting])
def test_what_inherits_from_the_user_model_is_part_of_the_account(policy, children):
    """Its columns and its files, however far below. Another courier's stay."""
    hers = {"address": "12 St James's Square", "van": 3}
    for name, number in (("ada", 1), ("grace", 2)):
        made = make_member(name, number, Cyclist, bicycle=f"of {name}", **hers)
        made.licence.save(f"{name}.png", ContentFile(b"a licence"))
    policy().erase_user(Member.objects.get(handle="ada"))
    assert default_storage.listdir("licences")[1] == ["grace.png"]
    left = Cyclist.objects.exclude(handle="grace").values_list("address", "bicycle")
    assert list(left) == [("", "")] * (policy is IdentityPolicy)
    assert Cyclist.objects.get(handle="grace").address
    assert sorted(cannot_blank(Member)) == sorted([*KEPT, "Courier.van"])


def test_a_way_of_erasing_that_is_misspelt_erases_nothing():
    """It is not taken for the other one: the erasure fails, and is loud."""

    class Misspelt(IdentityPolicy):
        erasure: Any = "Delete"

    ada = make_member("ada", 1)
    with pytest.raises(KeyError, match="Delete"):
        Misspelt().erase_user(ada)
    assert Member._default_manager.get().email == ada.email
