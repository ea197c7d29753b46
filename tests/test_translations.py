"""App and example project speak five more languages, in the words of one glossary."""

import gettext
import io
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

import pytest
from babel.messages import Catalog, Message
from babel.messages.pofile import read_po
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as gettext_of
from django.utils.translation import override

import django_identity
from django_identity.requirements import CLAIMS
from django_identity.texts.advice import distance
from django_identity.texts.labels import counted_values, heading_of

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
    file = locale / language / "LC_MESSAGES" / "django.po"
    return read_po(io.BytesIO(file.read_bytes()), locale=language)


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
        needed = catalogue.num_plurals if len(english) > 1 else 1
        assert len(translated) == needed, english
        assert all(translated), english
        assert not message.fuzzy, english


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
    compiled = gettext.translation("django", COMPILED[locale], [language])
    for (context, *english), message in messages_of(locale, language).items():
        if len(english) == 1:
            get = partial(compiled.pgettext, context) if context else compiled.gettext
            assert get(english[0]) == message.string
        else:
            said = {compiled.ngettext(*english, number) for number in range(200)}
            assert said == {*message.string}


SPOKEN = {
    "fr": "Vous irez sur votre service",
    "pt": "Irá para o seu serviço de identidade",
    "pt-br": "Você vai para seu serviço de identidade",
    "es": "Irá a su servicio de identidad, iniciará sesión allí",
    "ar": "ستنتقلون إلى خدمة هويتكم",
}


@pytest.mark.django_db
@pytest.mark.parametrize("language", SPOKEN)
def test_a_page_speaks_the_language(client, settings, language):
    settings.LANGUAGE_CODE = language
    page = client.get(reverse("identity:login")).content.decode()
    direction = "rtl" if language == "ar" else "ltr"
    assert f'<html lang="{language}" dir="{direction}">' in page
    assert SPOKEN[language] in page


@pytest.mark.parametrize(
    ("hours", "words"),
    [(1, "قبل ساعة"), (2, "قبل ساعتين"), (3, "قبل 3\xa0ساعات"), (24, "قبل يوم")],  # noqa: RUF001  Arabic letters
)
def test_no_number_stands_beside_the_dual(hours, words):
    """Arabic has a form for two of a thing, which says the number."""
    with override("ar"):
        assert distance(timezone.now() - timedelta(hours=hours, minutes=1)) == words


@pytest.mark.parametrize("language", SPOKEN)
def test_a_heading_has_one_colon(language):
    """Where no preposition fits all countries, the name stands behind a colon."""
    several = ("country_resident=PT", "country_resident=A|B|C|D|E|F|G", "level_2")
    with override(language):
        for asked in (*CLAIMS, *several):
            assert heading_of(asked).count(":") <= 1, asked


def test_a_colon_is_part_of_the_text_before_it() -> None:
    """In French a space stands between the two."""
    for template in (APP.parent / "templates").rglob("*.html"):
        assert '" %}:' not in template.read_text(encoding="utf-8"), template


@pytest.mark.parametrize("locale", CATALOGUES)
def test_french_has_no_plain_space_before_its_signs(locale):
    """A line does not begin with a colon."""
    for message in messages_of(locale, "fr").values():
        for form in forms(message.string):
            assert not re.search(r" [:;?!»]|« ", form), form


def test_countries_stand_where_people_look_for_them():
    with override("fr"):
        names = counted_values("country_resident=EG|EE|ES|DE|FR|PT|VU")
    assert names.index("Égypte") < names.index("France")


@pytest.mark.parametrize("language", ["en", "es", "fr", "pt-br"])
def test_a_sentence_begins_with_a_capital(language):
    """A site without a name is "this site" in its sentences."""
    with override(language):
        names = {
            "site": gettext_of("this site"),
            "forecast": {"account_kept": "policy"},
        }
        page = render_to_string("django_identity/erase.html", names)
    sentence = page.split("</strong>")[1].strip()
    assert sentence[0].isupper()
