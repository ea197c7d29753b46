"""What an erasure left is found by model and field, and never told by its value."""

import json
import os
import subprocess
import sys

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import models
from django.test.utils import isolate_apps
from django.utils import timezone

from django_identity.instruments import audit
from django_identity.lifecycle.leaving import erasure
from django_identity.policy import IdentityPolicy
from django_identity.testing import assert_erased
from django_identity.testing.sandbox import SandboxPerson
from tests.commands.run_command import Ran, run
from tests.factories import make_event, make_identity, make_user
from tests.leaky import models as leaky

pytestmark = pytest.mark.django_db

ADDRESS = "zoë.lovelace@example.com"
SUBJECT = "subject-of-zoë"
# What the service's own subjects look like.
KEY = "9f8b2c1d-0e4a-4d67-8a90-1234567890ab"


@pytest.fixture
def person() -> audit.Known:
    """What was known of somebody who is gone, with a name without letters. Two others are there.

    The number of one of them is not searched, nor where other tables point at it.
    """
    user = make_user(
        "zoe-the-first",
        first_name="Zoë",
        last_name="Lovelace-King",
        email=ADDRESS,
    )
    make_identity(user, subject=SUBJECT)
    known = audit.known_of_subject(SUBJECT)
    known |= audit.Known(frozenset({"@+@", "7654321", KEY}))
    user.delete()
    make_user("max", id=7654321, first_name="Max", last_name="Mayer")
    make_user("mia", first_name="Mia", last_name="Mayer")
    return known


def hits(person: audit.Known) -> dict[str, int]:
    return dict(audit.search(person).hits)


def test_an_erasure_that_left_nothing(person):
    """Nor does whoever prints it see what is looked for."""
    findings = audit.search(person)
    assert findings.hits == {}
    assert findings.unsure == {}
    assert findings.unread == {"leaky.Elsewhere": "no table"}
    assert "zo" not in repr(person).lower()


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"text": f"Dear {ADDRESS.upper()}, hello"}, "text"),
        ({"text": json.dumps({"to": ADDRESS})}, "text"),
        ({"text": "Ms. Lovelace-King called"}, "text"),
        ({"data": {"people": [{"name": "zoë lovelace-king"}]}}, "data"),
        ({"blob": b"\x80\x04" + SUBJECT.encode() + b"\xff."}, "blob"),
        ({"text": "Zoe\u0308 Lovelace-King"}, "text"),
        ({"text": '{"to": "zoe\\u0308.lovelace@example.com"}'}, "text"),
        ({"reference": KEY}, "reference"),
        ({"text": f"{KEY.replace('-', '').upper()}"}, "text"),
        ({"data": {"user_id": KEY}}, "data"),
        ({"text": json.dumps({"to": ADDRESS.upper()})}, "text"),
        ({"data": {"body": json.dumps({"to": ADDRESS})}}, "data"),
        ({"text": json.dumps(json.dumps({"to": ADDRESS}))}, "text"),
    ],
    ids=[
        "other case",
        "escaped in JSON",
        "a part of the name that nobody else has",
        "JSON",
        "binary",
        "with an accent of its own",
        "an accent of its own in JSON",
        "UUID",
        "UUID without hyphens",
        "UUID in JSON",
        "capitals escaped in JSON",
        "JSON in JSON",
        "escaped twice in JSON",
    ],
)
def test_columns_of_each_kind(person, columns, field):
    """Also behind a manager that hides the row."""
    leaky.Copy(**columns).save_base(force_insert=True)
    assert hits(person) == {f"leaky.Copy.{field}": 1}


def test_models_of_each_kind(person):
    """Multi-table, a key that is a name, a table between two others, history, the admin's log."""
    leaky.SpecialCopy.objects.create(note=ADDRESS, text=ADDRESS)
    author = leaky.Author.objects.create(name="zoe-the-first")
    leaky.Book.objects.create(author=author).readers.add(author)
    leaky.Payment.objects.create(account=leaky.Account.objects.create(key=KEY))
    leaky.HistoricalUser.objects.create(first_name="Zoë", email=ADDRESS)
    LogEntry.objects.create(
        user=User.objects.get(username="max"),
        content_type=ContentType.objects.get_for_model(User),
        object_repr=ADDRESS,
        action_flag=CHANGE,
    )

    assert hits(person) == {
        "leaky.SpecialCopy.note": 1,
        "leaky.Copy.text": 1,
        "leaky.Author.name": 1,
        "leaky.Book.author": 1,
        "leaky.Book_readers.author": 1,
        "leaky.Account.key": 1,
        "leaky.Payment.account": 1,
        "leaky.HistoricalUser.email": 1,
        "admin.LogEntry.object_repr": 1,
    }


def test_a_session_in_a_table(person, settings):
    """In Django's form or another. One that a former key has signed is not seen, as is said."""
    Session.objects.create(
        session_key="k",
        session_data=f'"to": {ADDRESS}',
        expire_date=timezone.now(),
    )
    session = SessionStore()
    session["address"] = ADDRESS
    session.save()
    assert hits(person) == {"sessions.Session.session_data": 2}

    settings.SECRET_KEY = "another key"
    findings = audit.search(person)
    assert findings.hits == {"sessions.Session.session_data": 1}
    assert "sessions that no key of the site opens" in " ".join(findings.not_seen)


def test_a_name_in_one_column_is_searched(person):
    """As user models have it that dropped the first and the last name."""
    with isolate_apps("tests.leaky"):

        class Member(AbstractBaseUser):
            handle = models.CharField(max_length=99)
            name = models.CharField(max_length=99)
            USERNAME_FIELD = "handle"
            first_name = last_name = None

            class Meta:
                app_label = "leaky"

    known = audit.known_of_account(Member(handle="m-1", name="Olga Petrowna"))
    leaky.Copy(text="Dear Ms. Petrowna").save_base(force_insert=True)
    assert hits(known) == {"leaky.Copy.text": 1}


def test_a_column_that_reads_in_its_own_way(person):
    letter = leaky.Letter.objects.create(text=ADDRESS)
    assert hits(person) == {"leaky.Letter.text": 1}
    leaky.Letter.objects.filter(pk=letter.pk).update(text="!broken")
    findings = audit.search(person)
    assert findings.unread["leaky.Letter.text"] == "ValueError"


def test_short_and_common_words_are_counted_apart(person):
    """ "Zoë" is in "Zoëtrope", and somebody else may be called Lovelace-King.

    By chance it stands in every five-hundredth hash of a password, where nobody looks for it.
    """
    User.objects.filter(username="max").update(
        last_name="Lovelace-King",
        password="md5$xZoeX1$9f8b2c1d",
    )
    leaky.Copy(text="The Zoëtrope was shown in Canada").save_base(force_insert=True)
    findings = audit.search(person)
    assert findings.hits == {}
    assert findings.unsure == {"leaky.Copy.text": 1, "auth.User.last_name": 1}


def test_a_name_that_the_person_s_own_account_keeps_is_found():
    """It makes no word common: the row is the person's own. A namesake's is another's."""
    user = make_user("zoe-the-first", first_name="Philomena", last_name="Lovelace")
    make_user("max", first_name="Max", last_name="Lovelace")
    findings = audit.search(audit.known_of_account(user))
    assert findings.hits == {"auth.User.username": 1, "auth.User.first_name": 1}
    assert findings.unsure == {"auth.User.last_name": 2}


def test_a_database_that_is_away_is_said():
    """In a process of its own: Django lets a test reach its own databases alone."""
    look = (
        "import django; from django.conf import settings; "
        "away = {'ENGINE': 'django.db.backends.sqlite3', 'NAME': '/nowhere/at/all.sqlite3'}; "
        "missing = {**away, 'ENGINE': 'of.a.driver.that.is.missing'}; "
        "settings.DATABASES = {**settings.DATABASES, 'away': away, 'missing': missing}; "
        "django.setup(); from django_identity.instruments import audit; unread = {}; "
        "list(audit.tables(unread)); print(unread['away'], unread['missing'])"
    )
    assert said_by(look) == "OperationalError ImproperlyConfigured\n"


def said_by(code: str) -> str:
    """What the code prints in a process of its own."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout


def test_a_table_is_searched_where_its_rows_are_written():
    """Though nobody may migrate that database, and another one has an empty table."""
    look = """
import django; from django.conf import settings

class Router:
    def db_for_write(self, model, **_):
        return "books" if model.__name__ == "Letter" else None
    db_for_read = db_for_write
    def allow_migrate(self, db, *_, **__):
        return db == "default"

databases = {name: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
             for name in ("default", "books", "copy")}
settings.DATABASES = databases; settings.DATABASE_ROUTERS = [Router()]; django.setup()
from django.db import connections
from django_identity.instruments import audit
from tests.leaky.models import Letter
for name in databases:
    with connections[name].schema_editor() as editor: editor.create_model(Letter)
print(*[table.db for table in audit.tables({}) if table.model is Letter])
"""
    assert said_by(look) == "default books\n"


@pytest.mark.parametrize("character", ["\\", "\u0301", "&", "%"])
def test_a_posted_value_holds_up_no_search(person, character):
    """Each took most of a minute in some way to read escapes or to compose letters."""
    leaky.Copy(text=character * 250_000 + SUBJECT).save_base(force_insert=True)
    assert hits(person) == {"leaky.Copy.text": 1}


def test_more_rows_than_are_read_at_once_are_searched(person, monkeypatch):
    monkeypatch.setattr(audit, "ROWS_AT_ONCE", 2)
    for _ in range(5):
        leaky.HistoricalUser.objects.create(first_name="-", email=ADDRESS)
    assert hits(person) == {"leaky.HistoricalUser.email": 5}


def test_our_own_emptied_events_keep_their_digests(person):
    """They say so on the privacy page; any other copy of the digest is found."""
    identity = make_identity(User.objects.get(username="max"), subject=SUBJECT)
    make_event(identity, "claim.issued", event_id="", subject="", payload=None)
    leaky.Copy(text=identity.subject_digest).save_base(force_insert=True)
    identity.delete()
    assert hits(person) == {"leaky.Copy.text": 1}


def test_a_short_name_of_wide_letters_is_no_chance(person):
    """Two Chinese letters are a name, and three of Latin ones are in many words."""
    user = make_user("member-1", first_name="小龙", last_name="李")
    known = audit.known_of_account(user)
    user.delete()
    leaky.Copy(text="李小龙先生").save_base(force_insert=True)
    assert hits(known) == {"leaky.Copy.text": 1}


def test_a_text_that_is_too_short_is_no_proof():
    """It would never be found, so a test that asks for it would prove nothing."""
    with pytest.raises(ValueError, match="nobody is named"):
        assert_erased()
    with pytest.raises(ValueError, match="'Ada' is too short"):
        assert_erased("Ada", unread=NOT_HERE)


class Leaky(IdentityPolicy):
    """A site that copies the address before it erases."""

    def erase_user(self, user: AbstractBaseUser) -> None:
        leaky.HistoricalUser.objects.create(first_name="-", email=user.get_username())
        super().erase_user(user)


# A model whose table is somebody else's.
NOT_HERE = ["leaky.Elsewhere"]


def erase() -> Ran:
    return run("identity_erase", SUBJECT, "--yes", "--audit")


def test_the_command_exits_with_1_if_something_is_left(settings):
    """It names the place, and not the value."""
    given = settings.DJANGO_IDENTITY
    settings.DJANGO_IDENTITY = {**given, "POLICY": f"{__name__}.Leaky"}
    make_identity(make_user(ADDRESS), subject=SUBJECT)
    ran = erase()
    assert ran.code == 1
    assert "left something" in ran.error
    assert '"leaky.HistoricalUser.email": 1' in ran.out
    assert ADDRESS not in ran.out


def test_a_later_audit_says_that_it_knew_the_subject_alone():
    """The names of an account that is gone can be anywhere, and nobody knows them any more."""
    make_identity(make_user(ADDRESS), subject=SUBJECT)
    assert "the account's names and addresses" not in erase().out
    assert "the account's names and addresses" in erase().out


def test_the_command_exits_with_2_if_something_was_not_read(monkeypatch):
    """There may be anything in it. It is content where all tables are there."""
    make_identity(make_user(ADDRESS), subject=SUBJECT)
    ran = erase()
    assert ran.code == 2
    assert '"hits": {}' in ran.out
    assert "1 place(s) were not read: leaky.Elsewhere" in ran.error

    monkeypatch.setattr(leaky.Elsewhere._meta, "proxy", True)
    make_identity(make_user(ADDRESS), subject=SUBJECT)
    assert erase().code == 0


def test_an_account_that_stays_is_not_looked_for():
    """Its owner's name is still theirs; the subject is not."""
    make_identity(make_user(ADDRESS), subject=SUBJECT, account_made=False)
    leaky.Copy(text=f"{ADDRESS} is {SUBJECT}").save_base(force_insert=True)
    leaky.Copy(text=ADDRESS).save_base(force_insert=True)
    ran = erase()
    assert ran.code == 1
    assert '"leaky.Copy.text": 1' in ran.out


def test_a_sites_own_test():
    user = make_user(ADDRESS, first_name="Zoë")
    person = SandboxPerson(SUBJECT, "zoe@sandbox.example", "a password")
    make_identity(user, subject=SUBJECT)
    with pytest.raises(AssertionError, match=r"User\.username"):
        assert_erased(user, person)
    erasure.erase_account(user)
    assert_erased(user, person, "anything else", unread=NOT_HERE)
    leaky.Copy(data={"to": "ZOE@sandbox.example"}).save_base(force_insert=True)
    with pytest.raises(AssertionError, match=r"leaky\.Copy\.data \(1\)$"):
        assert_erased(user, person, unread=NOT_HERE)


def test_a_test_fails_on_what_nobody_has_read():
    """A column that raises, and a table that is not there, until it is named."""
    leaky.Letter.objects.create(text="!broken")
    unread = ["leaky.Elsewhere", "leaky.Letter.text"]
    with pytest.raises(
        AssertionError,
        match=r"^2 place\(s\) were not read: ",
    ) as failed:
        assert_erased("zoe@example.com")
    said = str(failed.value)
    assert all(place in said for place in unread)
    assert "(ValueError)" in said
    assert_erased("zoe@example.com", unread=unread)
    with pytest.raises(AssertionError, match=r"^1 place"):
        assert_erased("zoe@example.com", unread=unread[:1])
