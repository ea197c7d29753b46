"""``{% identity_login_button %}`` on a page of the site's own."""

import re

import pytest
from django.template import Context, RequestContext, Template, TemplateSyntaxError
from django.test import RequestFactory


def render(tag: str, **context: object) -> str:
    request = RequestFactory().get("/")
    return Template("{% load identity %}" + tag).render(
        RequestContext(request, context)
    )


@pytest.mark.parametrize(
    "given", ['size="huge"', 'theme="neon"', 'size=""', 'theme="Filled"']
)
def test_an_unknown_look_is_refused(given):
    """A misspelt size or theme is found when the page is first opened."""
    with pytest.raises(TemplateSyntaxError):
        render("{% identity_login_button " + given + " %}")


def test_what_is_given_is_escaped():
    """A label or address that somebody else chose stays text."""
    page = render(
        "{% identity_login_button label=evil next=evil %}",
        evil='"><script>alert(1)</script>',
    )
    assert "<script" not in page


def test_a_plain_page_needs_nothing_else():
    """A POST form with a CSRF token, a named button, its mark, and one stylesheet."""
    page = render('{% identity_login_button next="/adults/" %}')
    assert page.count("<form") == page.count("<button") == page.count("<svg") == 1
    assert 'method="post" action="/identity/login/"' in page
    assert "csrfmiddlewaretoken" in page
    assert 'name="next" value="/adults/"' in page
    assert page.count("button.css") == 1
    button = page[page.index("<button") :]
    words = re.sub(r"<[^>]+>", " ", button).split()
    assert " ".join(words) == "Continue with your identity service"
    assert 'aria-hidden="true"' in button
    assert not re.search(r"style=|onclick=|<script|<style", page)


def test_the_stylesheet_comes_with_the_button():
    """Also where there is no request, as in a fragment of a page."""
    page = Template("{% load identity %}{% identity_login_button %}").render(Context())
    assert "button.css" in page
    assert "csrfmiddlewaretoken" not in page
