"""Who acts: people in their browsers, the service with its deliveries, upkeep, and the site itself.

Each actor is a process. It calls what a view, a task or a command calls.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from unittest import mock

import httpx
from django.contrib.auth.models import User

from django_identity.lifecycle.arriving import connect, sign_in
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import events, tokens
from django_identity.models import LinkedIdentity, Purpose
from django_identity.testing.events import deliver_event
from tests.interleavings.explorer import pause
from tests.interleavings.world import LEVELS, Arrived, Told, World

BROWSER_KEY = "k" * 43
#: The account that was there before, and its identity: the first rows of their tables.
FIRST = 1


def acts(world: World, label: str) -> None:
    """Pause before something that a person or the service does: it has a time of its own."""
    pause(label)
    world.advance(seconds=1)


# People


def signs_in(world: World, *, subject: str = "ada", inside: bool = False) -> str:
    """The button, the consent, the callback, the session. ``inside``: from the first account."""
    user = User(pk=FIRST) if inside else None
    acts(world, "presses the button")
    address = sign_in.begin(
        user=user,
        next_url="/",
        redirect_uri="http://x/",
        browser_key=BROWSER_KEY,
    )
    state = httpx.URL(address).params["state"]

    acts(world, "allows it at the service")
    code = world.approve(subject)
    approved_at = str(world.now)

    callback = sign_in.Callback(state, code)
    done = sign_in.complete(callback, browser_key=BROWSER_KEY, user=user)
    mark = ""
    if done.purpose == Purpose.SIGN_IN:
        mark = sessions.mark_of(done.linked)
    arrived = Arrived(subject, approved_at, done.linked.user_id, mark)
    world.arrived.append(arrived)
    return "signed in"


def enters_code(world: World) -> str:
    """The user of the first account enters a Connect code of Ada's."""
    acts(world, "enters a Connect code")
    connect.redeem("CNX-ADAS-CODE", user=User(pk=FIRST))
    arrived = Arrived("ada", world.redeemed_at, FIRST, by_code=True)
    world.arrived.append(arrived)
    return "verified"


def ends(world: World, *, what: str, by: Callable[[User], object]) -> str:
    """Somebody here ends the first account, its link or its sessions.

    All sessions of the account that began until then are over.
    """
    acts(world, f"is {what}")
    by(User(pk=FIRST))
    world.here[what] = str(world.now)
    world.ended += [
        arrived.mark for arrived in world.arrived if arrived.user_id == FIRST
    ]
    return what


# The service


def deliver(told: Told) -> None:
    deliver_event(
        told.event_type,
        "ada",
        event_id=told.event_id,
        at=datetime.fromisoformat(told.at),
        **told.about,
    )


def happens(world: World, *, what: str, times: int = 1) -> str:
    """One thing, or several, happen at the service. It delivers the last one first."""
    told = []
    for event_type in what.split(", "):
        acts(world, f"at the service: {event_type}")
        told.append(world.happens(event_type))
    for each in told[::-1] * times:
        deliver(each)
    return "acknowledged"


def repeats(world: World) -> str:
    """The service delivers all that it has told so far once more, and does not wait."""
    pause("delivers again")
    for told in list(world.told):
        deliver(told)
    return "acknowledged"


# The site


def refetches(world: World) -> str:
    pause("is re-fetched")
    return str([*upkeep.refetch_these([FIRST])])


def refreshes(world: World) -> str:
    pause("needs a token")
    identity = LinkedIdentity.objects.get(pk=FIRST)
    return tokens.access_token_for(identity).reveal()


def tends(world: World) -> str:
    pause("upkeep, a minute later")
    world.advance(minutes=1)
    return str(upkeep.tend())


# Before


def known(world: World, *, password: str | None = None, **ago: float) -> None:
    """Ada has an account, which her sign-in made some time ago."""
    signs_in(world)
    if password:
        User.objects.update(password=password)
    world.advance(minutes=10, **ago)


def older(world: World) -> None:
    """Somebody has an account with a password, which is older than any link."""
    User.objects.create_user("older", password="x")
    world.advance(minutes=10)


def unapplied(world: World, *, what: str) -> None:
    """Ada is known. A process has stored an event about her, and died before it applied it."""
    known(world)
    dies = mock.patch.object(events, "apply", side_effect=SystemExit)
    with suppress(SystemExit), dies:
        deliver(world.happens(what))
    world.advance(minutes=1)


def rejected(world: World, *, hours: int) -> None:
    """The same, of somebody whom the service had rejected by then."""
    world.kyc = LEVELS["kyc.rejected"]
    known(world, hours=hours)
