"""Who acts: people in their browsers, the service with its deliveries, upkeep, and the site itself.

Each actor is a process. It calls what a view, a task or a command calls.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from django.contrib.auth.models import User

from django_identity import conf
from django_identity.lifecycle import (
    connect,
    disconnecting,
    events,
    sessions,
    sign_in,
    tokens,
    upkeep,
)
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.service.webhooks import Event
from tests.interleavings.explorer import Run
from tests.interleavings.world import MINUTE, Told

BROWSER_KEY = "k" * 43


class Arrived(NamedTuple):
    """A sign-in or a code that was completed. ``mark``: of the session that it began, if any."""

    application: str
    subject: str
    approved_at: str
    user_id: int
    mark: str = ""
    by_code: bool = False


# People


def signs_in(
    run: Run, *, alias: str = "default", subject: str = "ada", inside: bool = False
) -> str:
    """The button, the consent, the callback, the session. ``inside``: from the known account."""
    application = conf.application(alias)
    user = _user(run) if inside else None
    run.acts("presses the button")
    address = sign_in.begin(
        application,
        user=user,
        next_url="/",
        redirect_uri="http://x/",
        browser_key=BROWSER_KEY,
    )
    state = parse_qs(urlsplit(address).query)["state"][0]

    run.acts("allows it at the service")
    code = run.service.approve(alias, subject, application.scopes)
    approved_at = run.clock.text()

    callback = sign_in.Callback(state, code)
    done = sign_in.complete(application, callback, browser_key=BROWSER_KEY, user=user)
    mark = ""
    if done.linked.session_identity is not None:
        mark = sessions.mark_of(done.linked.session_identity)
    arrived = Arrived(alias, subject, approved_at, done.linked.user.pk, mark)
    run.facts["arrived"].append(arrived)
    return "signed in"


def enters_code(run: Run) -> str:
    """The user of the known account enters a Connect code of Ada's."""
    run.acts("enters a Connect code")
    code = run.service.make_connect_code()
    connect.redeem(conf.application(), code, user=_user(run))
    approved_at = run.service.redeemed_at
    arrived = Arrived("default", "ada", approved_at, run.facts["user"], by_code=True)
    run.facts["arrived"].append(arrived)
    return "verified"


def disconnects(run: Run) -> str:
    run.acts("disconnects")
    if disconnecting.leave(_user(run), application=conf.application()):
        _end_sessions(run)
    return "disconnected"


def signs_out_everywhere(run: Run) -> str:
    run.acts("signs out everywhere")
    sessions.end_all(_user(run), application="default")
    _end_sessions(run)
    return "signed out"


def is_erased(run: Run, *, by: Callable[[User], object]) -> str:
    """The account goes, with all its identities, at the wish of somebody here."""
    run.acts("erases the account")
    by(_user(run))
    run.facts["erased here"].append(run.clock.text())
    return "erased"


def _user(run: Run) -> User:
    return User(pk=run.facts["user"])


def _identity(run: Run) -> LinkedIdentity:
    return LinkedIdentity.objects.get(pk=run.facts["identity"])


def _end_sessions(run: Run) -> None:
    """All sessions that began until now have to be over."""
    run.facts["ended"].extend(arrived.mark for arrived in run.facts["arrived"])


# The service


def deliver(told: Told) -> None:
    application = conf.application(told.alias)
    secret = application.webhook_secrets[0].reveal().encode()
    signature = hmac.new(secret, told.body, sha256).hexdigest()
    events.receive(application, told.body, signature=signature)


def is_stored(told: Told) -> bool:
    event = Event.parse(told.body)
    application = conf.application(told.alias)
    stored = WebhookEvent.digest_of(application, event, subject=event.subject)
    return WebhookEvent.objects.filter(event_digest=stored).exists()


def happens(run: Run, *, what: str, times: int = 1, **where: str) -> str:
    """Something, or one thing after another, happens at the service. It delivers the last first."""
    told = [_act(run, each, **where) for each in what.split()]
    for each in told[::-1] * times:
        deliver(each)
    return "acknowledged"


def _act(run: Run, what: str, **where: str) -> Told:
    run.acts(f"at the service: {what}")
    act: Callable[..., Told] = getattr(run.service, what)
    return act(**where)


# The site


def refetches(run: Run) -> str:
    run.pause("is re-fetched")
    return str([*upkeep.refetch_these([run.facts["identity"]])])


def refreshes(run: Run) -> str:
    run.pause("needs a token")
    return tokens.access_token_for(_identity(run)).reveal()


def tends(run: Run) -> str:
    run.pause("upkeep, a minute later")
    run.clock.seconds += MINUTE
    return f"{upkeep.tend()} handled"


def operator_revokes(run: Run) -> str:
    run.acts("an operator revokes")
    interventions.revoke([_identity(run)])
    run.facts["revoked here"].append(run.clock.text())
    _end_sessions(run)
    return "revoked"


# Before


def nobody(run: Run) -> None:
    """Nobody is linked yet."""


def known(run: Run, *, password: bool = False, minutes: int = 10) -> None:
    """Ada has an account, which her sign-in made some ``minutes`` ago."""
    signs_in(run)
    identity = LinkedIdentity.objects.get()
    run.facts["identity"] = identity.pk
    run.facts["user"] = identity.user_id
    if password:
        identity.user.set_password("x")
        identity.user.save()
    run.clock.seconds += minutes * MINUTE


def older(run: Run) -> None:
    """Somebody has an account with a password, which is older than any link."""
    user = User.objects.create_user("older", password="x")
    run.facts["user"] = user.pk
    run.clock.seconds += 10 * MINUTE


def known_twice(run: Run) -> None:
    """Ada's account has an identity of each of two applications."""
    known(run)
    signs_in(run, alias="second", inside=True)
    run.clock.seconds += 10 * MINUTE


def with_one_address(run: Run) -> None:
    """All people have one e-mail address."""
    run.service.address = "family@example.org"


def unapplied(run: Run, what: str) -> None:
    """Ada is known. A process has stored an event about her, and died before it applied it."""
    known(run)
    told = _act(run, what)
    WebhookEvent.objects.stored(conf.application(), Event.parse(told.body))
    run.clock.seconds += MINUTE
