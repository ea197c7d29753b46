"""App, sandbox and example project speak five more languages, in the words of one glossary."""

from __future__ import annotations

import gettext
import re
from ast import literal_eval
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.test import Client, override_settings
from django.urls import reverse

import django_identity
import example_project
from tests.hostile import hostile_service

LANGUAGES = ("fr", "pt", "pt_BR", "es", "ar")
APP = Path(django_identity.__file__).parent / "locale"
SANDBOX = APP.parent / "sandbox" / "locale"
EXAMPLE = Path(example_project.__file__).parent / "circle" / "locale"
#: How many texts there are at least: a catalogue that was not read would be complete.
CATALOGUES = {APP: 400, SANDBOX: 400, EXAMPLE: 50}
EACH = pytest.mark.parametrize(
    ("locale", "language"),
    [(locale, language) for locale in CATALOGUES for language in LANGUAGES],
    ids=lambda given: given.parent.name if isinstance(given, Path) else given,
)
GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|</?\w+")
LINE = re.compile(r'(?:(msg\w+)(?:\[\d\])? )?(".*")')


@dataclass
class Text:
    """One text of a catalogue: its English forms, and its translated ones."""

    english: list[str] = field(default_factory=list)
    translated: list[str] = field(default_factory=list)
    context: str = ""


def written_in(locale: Path, language: str) -> str:
    return (locale / language / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")


def texts_of(locale: Path, language: str) -> tuple[str, list[Text]]:
    """The header and the texts of a language's catalogue, as they are written in its file."""
    written = written_in(locale, language)
    texts = [_text(block) for block in written.split("\n\n") if "\nmsgid" in f"\n{block}"]
    return texts[0].translated[0], texts[1:]


def _text(block: str) -> Text:
    text = Text()
    forms: list[str] = []
    for line in block.splitlines():
        if not (found := LINE.fullmatch(line)):
            continue
        keyword, quoted = found.groups()
        if keyword == "msgctxt":
            text.context = literal_eval(quoted)
        elif keyword:
            forms = text.translated if keyword == "msgstr" else text.english
            forms.append(literal_eval(quoted))
        else:
            forms[-1] += literal_eval(quoted)
    return text


@EACH
def test_a_catalogue_is_complete(locale: Path, language: str) -> None:
    """Each text has as many translated forms as the language needs, and none is empty."""
    header, texts = texts_of(locale, language)
    plurals = int(re.search(r"nplurals=(\d)", header)[1])

    assert len(texts) > CATALOGUES[locale]
    for text in texts:
        assert len(text.translated) == (plurals if len(text.english) > 1 else 1), text
        assert all(text.translated), text


@EACH
def test_a_catalogue_has_nothing_in_doubt(locale: Path, language: str) -> None:
    """No text waits for somebody to look it through, and none is left over from older code."""
    written = written_in(locale, language)

    assert ", fuzzy" not in written
    assert "\n#~" not in written


@pytest.mark.parametrize("locale", CATALOGUES, ids=lambda locale: locale.parent.name)
def test_the_catalogues_hold_the_same_texts(locale: Path) -> None:
    """What can be said in one language can be said in each."""
    held = [
        {(text.context, *text.english) for text in texts_of(locale, language)[1]}
        for language in LANGUAGES
    ]

    assert all(texts == held[0] for texts in held)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_both_say_they_say_alike(language: str) -> None:
    """The example project's catalogue comes before the app's, and must not change its words."""
    in_app, in_example = (
        {(text.context, *text.english): text.translated for text in texts_of(locale, language)[1]}
        for locale in (APP, EXAMPLE)
    )
    shared = in_app.keys() & in_example.keys()
    assert shared
    assert {text: in_app[text] for text in shared} == {text: in_example[text] for text in shared}


@EACH
def test_placeholders_and_tags_survive(locale: Path, language: str) -> None:
    """A translation takes the values and the markup of its text: all of them, and no others."""
    for text in texts_of(locale, language)[1]:
        wanted = Counter(PLACEHOLDER.findall(text.english[0]))
        for number, form in enumerate(text.translated):
            missing = wanted - Counter(PLACEHOLDER.findall(form))
            # "Two minutes" is one word in Arabic: such a form may do without the named number.
            is_word = language == "ar" and number in {1, 2} and len(text.english) > 1
            assert not missing or (is_word and "%d" not in missing), form
            assert Counter(PLACEHOLDER.findall(form)) <= wanted, form


@EACH
def test_the_compiled_catalogue_is_the_written_one(locale: Path, language: str) -> None:
    """What a site loads is what the translator wrote."""
    compiled = gettext.translation("django", locale, [language])

    for text in texts_of(locale, language)[1]:
        if len(text.english) == 1:
            said = _said(compiled, text.english[0], text.context)
            assert said == text.translated[0]
        else:
            said = {compiled.ngettext(*text.english, number) for number in range(200)}
            assert said == {*text.translated}


def _said(compiled: gettext.NullTranslations, english: str, context: str) -> str:
    return compiled.pgettext(context, english) if context else compiled.gettext(english)


@pytest.mark.parametrize("locale", CATALOGUES, ids=lambda locale: locale.parent.name)
def test_french_marks_keep_to_their_word(locale: Path) -> None:
    """A no-break space stands before each mark of two parts, so that no line begins with one."""
    loose = re.compile(r"[^\u00a0\u202f\W][:;?!](?=\s|$)| [:;?!](?=\s|$)")

    texts = texts_of(locale, "fr")[1]
    assert [form for text in texts for form in text.translated if loose.search(form)] == []


def test_no_sentence_begins_with_the_service() -> None:
    """Its name is "identity" by default, and a sentence begins with a capital."""
    texts = texts_of(APP, "fr")[1]
    assert [each for each in texts if each.english[0].startswith("%(service_name)s")] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("fr", "Vous irez sur le service"),
        ("pt", "Irá para o serviço de identidade"),
        ("pt-br", "Você vai para o serviço de identidade"),
        ("es", "Irá a la página de inicio de sesión"),
        ("ar", "ستنتقلون إلى خدمة الهوية"),
    ],
)
def test_a_page_speaks_the_language(client: Client, language: str, sentence: str) -> None:
    """The sign-in page greets a person in their language, and runs the way it is read."""
    direction = "rtl" if language == "ar" else "ltr"

    with (
        hostile_service() as running,
        override_settings(DJANGO_IDENTITY={"default": running.settings()}, LANGUAGE_CODE=language),
    ):
        page = client.get(reverse("identity:login")).content.decode()

    assert f'<html lang="{language}" dir="{direction}">' in page
    assert sentence in page


def test_the_glossary_has_each_word_in_each_language() -> None:
    """Every word of the table is given in English and in the four languages."""
    rows = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    words = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]

    assert len(words) > 30
    assert all(len(row) == 6 and all(row) for row in words)
