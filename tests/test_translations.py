"""App and example project speak five more languages, in the words of one glossary."""

import gettext
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

import pytest
from babel.messages import Catalog, Message
from babel.messages.pofile import read_po
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

import django_identity
from django_identity.requirements import CLAIMS
from django_identity.texts.advice import distance
from django_identity.texts.labels import heading_of
from tests.fake_service import serving

LANGUAGES = ("fr", "pt", "pt_BR", "es", "ar")
ROOT = Path(__file__).parents[1]
APP = ROOT / "django_identity" / "locale"
EXAMPLE = ROOT / "example_project" / "circle" / "locale"
#: A wheel has the compiled catalogues alone.
COMPILED = {APP: Path(django_identity.__file__).parent / "locale", EXAMPLE: EXAMPLE}
#: How many texts there are at least: a catalogue that was not read would be complete.
CATALOGUES = {APP: 400, EXAMPLE: 50}
EACH = pytest.mark.parametrize(
    ("locale", "language"),
    [(locale, language) for locale in CATALOGUES for language in LANGUAGES],
    ids=lambda given: given.parent.name if isinstance(given, Path) else given,
)
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|</?\w+")


@cache
def texts_of(locale: Path, language: str) -> Catalog:
    """The catalogue of a language, as it is written in its file."""
    with (locale / language / "LC_MESSAGES" / "django.po").open("rb") as file:
        return read_po(file, locale=language)


def messages_of(locale: Path, language: str) -> dict[tuple[str, ...], Message]:
    """Context and English forms -> the message."""
    found = [each for each in texts_of(locale, language) if each.id]
    return {(each.context or "", *forms(each.id)): each for each in found}


def forms(text: str | Sequence[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


@EACH
def test_a_catalogue_is_complete(locale, language):
    """Each text has all forms that the language needs; none is in doubt or left over."""
    catalogue = texts_of(locale, language)
    messages = messages_of(locale, language)
    assert len(messages) > CATALOGUES[locale]
    assert not catalogue.obsolete
    for (_context, *english), message in messages.items():
        translated = forms(message.string)
        assert len(translated) == (catalogue.num_plurals if len(english) > 1 else 1), (
            english
        )
        assert all(translated), english
        assert not message.fuzzy, english


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="needs gettext")
@pytest.mark.parametrize("locale", CATALOGUES, ids=["app", "example"])
def test_makemessages_changes_nothing(locale: Path, tmp_path: Path) -> None:
    """On the unchanged tree, so that after a change a translator sees that one alone."""
    unread = shutil.ignore_patterns("__pycache__", "sandbox", "static")
    copied = shutil.copytree(locale.parent, tmp_path / "copy", ignore=unread)
    command = ["-m", "django", "makemessages", "--all", "--no-location", "--no-wrap"]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": ""}
    subprocess.run(
        [sys.executable, *command], cwd=copied, env=env, check=True, capture_output=True
    )
    for language in LANGUAGES:
        name = f"{language}/LC_MESSAGES/django.po"
        assert (copied / "locale" / name).read_text() == (locale / name).read_text()


@EACH
def test_placeholders_and_tags_survive(locale, language):
    """A translation takes the values and the markup of its text: all of them, and no others."""
    for (_context, *english), message in messages_of(locale, language).items():
        wanted = Counter(PLACEHOLDER.findall(english[0]))
        for number, form in enumerate(forms(message.string)):
            missing = wanted - Counter(PLACEHOLDER.findall(form))
            # "Two minutes" is one word in Arabic: such a form may do without the named number.
            is_word = language == "ar" and number in {1, 2} and len(english) > 1
            assert not missing or (is_word and "%d" not in missing), form
            assert Counter(PLACEHOLDER.findall(form)) <= wanted, form


@EACH
def test_the_compiled_catalogue_is_the_written_one(locale, language):
    """What a site loads is what the translator wrote."""
    compiled = gettext.translation("django", COMPILED[locale], [language])
    for (context, *english), message in messages_of(locale, language).items():
        if len(english) == 1:
            get = partial(compiled.pgettext, context) if context else compiled.gettext
            assert get(english[0]) == message.string
        else:
            said = {compiled.ngettext(*english, number) for number in range(200)}
            assert said == {*message.string}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("fr", "Vous irez sur votre service"),
        ("pt", "Irá para o seu serviço de identidade"),
        ("pt-br", "Você vai para seu serviço de identidade"),
        ("es", "Irá a su servicio de identidad, iniciará sesión allí"),
        ("ar", "ستنتقلون إلى خدمة هويتكم"),
    ],
)
def test_a_page_speaks_the_language(client, language, sentence):
    """The sign-in page greets a person in their language, and runs the way it is read."""
    direction = "rtl" if language == "ar" else "ltr"

    with (
        serving() as running,
        override_settings(DJANGO_IDENTITY=running.settings(), LANGUAGE_CODE=language),
    ):
        page = client.get(reverse("identity:login")).content.decode()

    assert f'<html lang="{language}" dir="{direction}">' in page
    assert sentence in page


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (1, "قبل ساعة"),
        (2, "قبل ساعتين"),
        (3, "قبل 3\xa0ساعات"),  # noqa: RUF001  Arabic letters
        (24, "قبل يوم"),
    ],
)
def test_no_number_stands_beside_the_dual(hours, words):
    """Arabic has a form for two of a thing, which says the number."""
    with override("ar"):
        assert distance(timezone.now() - timedelta(hours=hours, minutes=1)) == words


@pytest.mark.parametrize("language", ["fr", "pt", "pt-br", "es", "ar"])
def test_a_heading_has_one_colon(language):
    """Where no preposition fits all countries, the name stands behind a colon."""
    with override(language):
        for asked in (
            *CLAIMS,
            "country_resident=PT",
            "country_resident=A|B|C|D|E|F|G",
            "level_2",
        ):
            assert heading_of(asked).count(":") <= 1, asked


def test_a_colon_is_part_of_the_text_before_it() -> None:
    """In French a space stands between the two."""
    for template in (APP.parent / "templates").rglob("*.html"):
        assert '" %}:' not in template.read_text(encoding="utf-8"), template


def test_french_has_no_plain_space_before_its_signs():
    """A line does not begin with a colon."""
    for locale in CATALOGUES:
        for message in messages_of(locale, "fr").values():
            for form in forms(message.string):
                assert not re.search(r" [:;?!»]|« ", form), form
