"""What a test asks of a page that stands in the browser."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page


class Look(NamedTuple):
    """A width, a colour scheme, and the size of the text that the browser is set to."""

    width: int
    scheme: str = "light"
    text: str = "100%"


SHOTS = os.environ.get("IDENTITY_SCREENSHOTS")
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
OVERFLOW = """() => {
  const root = document.documentElement, inside = root.clientWidth;
  if (root.scrollWidth <= inside) return [];
  const wide = [...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.right > inside + 1 || box.left < -1;
  });
  return ['the page', ...wide.map(e => e.outerHTML.slice(0, 120))];
}"""
# A colour on its way to another one is neither. No rule needs the style sheets, of which axe makes
# copies that the strict policy of a page refuses.
RUN_AXE = """async () => {
  await Promise.allSettled(document.getAnimations().map(each => each.finished));
  const found = await axe.run({resultTypes: ['violations'], preload: {assets: ['media']}});
  return found.violations.flatMap(v => v.nodes.map(n => [v.id, n.html.slice(0, 160), n.failureSummary]));
}"""  # noqa: E501

TEXT = "size => { document.documentElement.style.fontSize = size; }"
# Lists without bullets that do not say that they are lists: Safari reads them as none.
UNMARKED = """() => [...document.querySelectorAll('main :is(ul, ol):not([role=list])')]
  .filter(each => getComputedStyle(each).listStyleType === 'none')
  .map(each => each.outerHTML.slice(0, 120))"""
SPOKEN = """() => {
  const skipped = 'code, pre, script, style, time, bdi, option, .identity-subject, .identity-value';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest(skipped)) found.push(walker.currentNode.data);
  for (const named of document.querySelectorAll('[aria-label], [placeholder], [alt]'))
    for (const name of ['aria-label', 'placeholder', 'alt'])
      found.push(named.getAttribute(name) || '');
  return found;
}"""
# An address, a path, or whatever has a digit in it.
NO_WORD = re.compile(r"\S+@\S+|/\S*|\S*[0-9]\S*")
LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z]+(?:[._-][A-Za-z]+)*")


def shoot(page: Page, name: str) -> None:
    """Keep what the page looks like, as ``name``.png in the folder ``IDENTITY_SCREENSHOTS``."""
    if SHOTS:
        page.screenshot(
            path=Path(SHOTS) / f"{name}.png",
            full_page=True,
            animations="disabled",
        )


def overflow(page: Page) -> Any:
    """What is wider than the window; empty if nothing scrolls sideways."""
    return page.evaluate(OVERFLOW)


def violations(page: Page) -> Any:
    """What axe-core (``npm ci --prefix tests/browser``) has against the page: rule, element, help.

    It comes in through the debugging protocol, which the page's CSP does not govern.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    return page.evaluate(RUN_AXE)


def latin_words(page: Page) -> set[str]:
    """The words in Latin letters, of text and of names, that are neither codes nor times."""
    return {
        word
        for text in page.evaluate(SPOKEN)
        for word in LATIN_WORD.findall(NO_WORD.sub(" ", text))
    }


INK = "getComputedStyle(document.querySelector('main h1, main h2')).color"


def looks_well_on_paper(page: Page, pressed: str) -> None:
    """A printer leaves the ground away: pale text would stand on white. Nobody presses paper."""
    inks = {}
    for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
        page.emulate_media(media=media, color_scheme=scheme)
        inks[media, scheme] = page.evaluate(INK)
    by_day, by_night, printed = inks.values()
    for each in page.locator(pressed).all():
        assert not each.is_visible()
    page.emulate_media(media="screen", color_scheme="light")
    assert printed == by_day != by_night


def looks_well(
    page: Page,
    name: str,
    looks: Iterable[Look],
    *,
    ours: bool = True,
) -> None:
    """In each look: nothing scrolls sideways, and axe finds nothing.

    ``ours``: also that a list without bullets says that it is one, which Django's admin does not.
    """
    for look in looks:
        page.emulate_media(color_scheme=look.scheme)
        page.set_viewport_size({"width": look.width, "height": 800})
        page.evaluate(TEXT, look.text)
        shoot(page, f"{name}-{look.width}-{look.scheme}")
        assert overflow(page) == [], look
        assert not ours or page.evaluate(UNMARKED) == []
        assert violations(page) == [], look
    page.emulate_media(color_scheme="light")
