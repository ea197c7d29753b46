"""Who acts: people in their browsers, the service with its deliveries, upkeep, and the site itself.

Each actor is a process. It calls what a view, a task or a command calls.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from django.contrib.auth.models import User

from django_identity import conf
from django_identity.lifecycle import (
    connect,
    disconnecting,
    erasure,
    events,
    sessions,
    sign_in,
    tokens,
    upkeep,
)
from django_identity.lifecycle.operators import interventions
from django_identity.models import LinkedIdentity, WebhookEvent
from django_identity.service.webhooks import Event
from tests.interleavings.processes import Run
from tests.interleavings.world import MINUTE, Told, text_of

BROWSER_KEY = "k" * 43
HALF_A_YEAR = 181 * 24 * 60 * MINUTE


@dataclass(frozen=True)
class Arrived:
    """A sign-in or a code that was completed. ``mark``: of the session that it began, if any."""

    alias: str
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
    approved_at = text_of(run.clock.now())

    callback = sign_in.Callback(state, code)
    done = sign_in.complete(application, callback, browser_key=BROWSER_KEY, user=user)
    if done.linked is not None:
        session = done.linked.session_identity
        mark = sessions.mark_of(session) if session else ""
        user_id = done.linked.user.pk
        run.facts["arrived"].append(Arrived(alias, subject, approved_at, user_id, mark))
    return "signed in"


def enters_code(run: Run) -> str:
    """The user of the known account enters a Connect code of Ada's."""
    run.acts("enters a Connect code")
    code = run.service.make_connect_code("default", "ada")
    connect.redeem(conf.application(), code, user=_user(run))
    approved_at = run.service.redeemed[code]
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


def erases_the_account(run: Run) -> str:
    run.acts("erases the account")
    erasure.erase_account(_user(run))
    run.facts["erased"].append((run.facts["user"], text_of(run.clock.now())))
    return "erased"


def _user(run: Run) -> User:
    return User(pk=run.facts["user"])


def _end_sessions(run: Run) -> None:
    """All sessions that began until now have to be over."""
    run.facts["ended"].extend(arrived.mark for arrived in run.facts["arrived"])


# The service


def deliver(run: Run, told: Told) -> None:
    application = conf.application(told.alias)
    secret = application.webhook_secrets[0].reveal().encode()
    events.receive(
        application,
        told.body,
        signature=hmac.new(secret, told.body, sha256).hexdigest(),
    )
    told.acknowledged += 1


def is_stored(told: Told) -> bool:
    application = conf.application(told.alias)
    event = Event.parse(told.body)
    stored = WebhookEvent.digest_of(application, event, subject=event.subject)
    return WebhookEvent.objects.filter(event_digest=stored).exists()


def happens(run: Run, *, what: str, times: int = 1, **where: str) -> str:
    """Something happens at the service. It delivers the event, perhaps again."""
    told = _acts(run, what, **where)
    for _ in range(times):
        deliver(run, told)
    return "acknowledged"


def happen_reversed(run: Run, *, first: str, second: str) -> str:
    """Two things happen at the service. The event of the second is delivered first."""
    earlier = _acts(run, first)
    later = _acts(run, second)
    deliver(run, later)
    deliver(run, earlier)
    return "acknowledged"


def _acts(run: Run, what: str, **where: str) -> Told:
    run.acts(f"at the service: {what}")
    act: Callable[..., Told] = getattr(run.service, what)
    return act(**where)


# The site


def refetches(run: Run) -> str:
    run.pause("is re-fetched")
    return str([*upkeep.refetch_these([run.facts["identity"]])])


def refreshes(run: Run) -> str:
    run.pause("needs a token")
    identity = LinkedIdentity.objects.get(pk=run.facts["identity"])
    return tokens.access_token_for(identity).reveal()


def tends(run: Run) -> str:
    run.pause("upkeep, a minute later")
    run.clock.seconds += MINUTE
    return f"{upkeep.tend()} handled"


def purges_and_replays(run: Run) -> str:
    """Half a year later the service, or somebody who recorded it, delivers everything again."""
    run.pause("half a year later")
    run.wait_for_others()
    run.clock.seconds += HALF_A_YEAR
    upkeep.purge()
    for told in list(run.service.events):
        deliver(run, told)
    return "replayed"


def operator_erases(run: Run) -> str:
    run.acts("an operator erases the person")
    interventions.erase(LinkedIdentity.objects.get(pk=run.facts["identity"]))
    run.facts["erased"].append((run.facts["user"], text_of(run.clock.now())))
    return "erased"


def deletes_the_user(run: Run) -> str:
    """The site's own code, such as a "close my account" view."""
    run.acts("the site deletes the user")
    User.objects.get(pk=run.facts["user"]).delete()
    run.facts["erased"].append((run.facts["user"], text_of(run.clock.now())))
    return "deleted"


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
    told = _acts(run, what)
    WebhookEvent.objects.stored(conf.application(), Event.parse(told.body))
    run.clock.seconds += MINUTE
