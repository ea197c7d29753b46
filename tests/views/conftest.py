"""Somebody who is signed in and their browser, a site's policy, and how a sign-in is refused."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.signals import request_started
from django.test import Client

from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.factories import make_user
from tests.views.bad_input import refusals
from tests.views.connect.pages import browser_of

Says = Callable[[str, Callable[[Profile], Any]], None]
Updates = Callable[[Callable[[Profile], dict[str, Any]]], None]


@pytest.fixture
def user() -> User:
    return make_user(email="other@example.org")


@pytest.fixture
def browser(user: User) -> Client:
    return browser_of(user)


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """``refused(response, code)``: the sign-in ended as ``refusals.refused`` says."""
    caplog.set_level(logging.DEBUG)
    brought: list[refusals.Brought] = []

    def note(environ: dict[str, Any], **_sent: Any) -> None:
        brought.append(refusals.Brought.by(environ))

    request_started.connect(note)
    yield partial(refusals.refused, caplog=caplog, brought=brought)
    request_started.disconnect(note)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """``says("may_sign_up", answer)``: what the site's policy makes of a profile."""

    def answer_with(method: str, answer: Callable[[Profile], Any]) -> None:
        asked = lambda *_given, profile, **_proven: answer(profile)  # noqa: E731
        monkeypatch.setattr(IdentityPolicy, method, asked)

    return answer_with


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> Updates:
    """``updates(fields)``: what the site's policy stores of a profile when a person returns."""

    def update_with(fields: Callable[[Profile], dict[str, Any]]) -> None:
        def update_user(
            _policy: IdentityPolicy,
            user: User,
            *,
            profile: Profile,
            **_proven: Any,
        ) -> None:
            for name, value in fields(profile).items():
                setattr(user, name, value)
            user.save()

        monkeypatch.setattr(IdentityPolicy, "update_user", update_user)

    return update_with
