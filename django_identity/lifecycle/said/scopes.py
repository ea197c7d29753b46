"""How a gate with a scope opens: how a scope gets to an identity, and when it goes again.

The gate is open if the person's consent is granted and covers the scope
(``LinkedIdentity.allows``). A gate opens only for a scope of the site's settings: see ``of_site``.

- A sign-in asks for ``SCOPES``, and for some of ``LATER_SCOPES`` (``asked_for``). What the person
  allows then takes the place of what they allowed before (``allowed_by``).
- A Connect code adds ``CONNECT_SCOPES`` without ``LATER_SCOPES`` (``with_code``).
- A refresh that lacks one of ``LATER_SCOPES`` that the person has allowed ends the grant
  (``lost``).
- The end of the consent takes them all (``withdrawal.NOTHING_BROUGHT``).
"""

from collections.abc import Iterable

from django_identity import conf
from django_identity.conf.rules import Scopes
from django_identity.models import LinkedIdentity
from django_identity.service.answers import TokenAnswer


def of_site() -> set[str]:
    """All scopes that a person may have allowed to the site."""
    application = conf.application()
    return {*application.scopes, *application.later_scopes, *application.connect_scopes}


def asked_for(*, more: str, allowed: Iterable[str]) -> Scopes:
    """What a sign-in asks for: ``SCOPES``, and some of ``LATER_SCOPES``.

    ``more``: the scope for which a gate has asked; any other text is ignored. ``allowed``: what the
    person has allowed already. The sign-in would else take it away.
    """
    application = conf.application()
    wanted = {more, *allowed}
    later = [scope for scope in application.later_scopes if scope in wanted]
    return (*application.scopes, *later)


def allowed_by(answer: TokenAnswer, *, asked: Iterable[str]) -> Scopes:
    """What the person has allowed in a sign-in that asked for ``asked``."""
    if answer.scopes is None:
        # The service left the member out, so it granted what was asked for (RFC 6749 §5.1).
        return tuple(asked)
    return answer.scopes


def with_code(identity: LinkedIdentity, brought: Iterable[str]) -> list[str]:
    """The identity's scopes, and those that a code brought.

    But no scope of ``LATER_SCOPES``: the code may be another person's, and the account's owner has
    not allowed this site to read it.
    """
    later = conf.application().later_scopes
    scopes = list(identity.scopes)
    for scope in brought:
        if scope not in (*scopes, *later):
            scopes.append(scope)
    return scopes


def lost(answer: TokenAnswer, *, had: Iterable[str]) -> set[str]:
    """What only a gate asks for, the grant ``had``, and a refresh lacks (RFC 6749 §6)."""
    if answer.scopes is None:
        return set()
    gated = {*conf.application().later_scopes}
    return gated.intersection(had).difference(answer.scopes)
