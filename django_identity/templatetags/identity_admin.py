"""Filters for the admin's pages; no promise to sites."""

from django import template
from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _

from django_identity.error_table import hint_of
from django_identity.gates import Closed
from django_identity.lifecycle.operators.timeline import Happening, Kind
from django_identity.models import LinkedVia, StoredClaim, TokenGrant
from django_identity.texts import operators as wording
from django_identity.texts.advice import REASONS, distance
from django_identity.texts.labels import in_words
from django_identity.texts.operators import Words

register = template.Library()

register.filter(distance)
register.filter("as_json", wording.as_json)
register.filter("level_name", wording.level_name)
register.filter(in_words)
register.filter("error_in_words", hint_of)
register.filter("environment_badge", wording.environment_badge)


@register.filter
def person(user: AbstractBaseUser, may_see_people: bool) -> str:
    """The person's user name, as far as the operator may see it."""
    return wording.person_name(user, may_see=may_see_people)


@register.filter
def title_of(closed: Closed) -> str:
    """What the person reads at the closed gate, in short."""
    return str(REASONS[closed.shortfall.reason].title) if closed.shortfall else ""


@register.filter
def claim_state(claim: StoredClaim) -> str:
    """Whether the claim counts, and for how long."""
    if claim.revoked:
        return _("revoked")
    if claim.valid_until is None:
        return _("only listed, not proven")
    return distance(claim.valid_until)


@register.filter
def happened(happening: Happening) -> Words:
    words = str(happening.kind.label)
    if happening.kind is Kind.EVENT:
        return f"{words}: {happening.detail}"
    if happening.kind is Kind.LINKED:
        via = dict(LinkedVia.choices).get(happening.detail, happening.detail)
        return _("Linked by %(via)s") % {"via": via}
    return words


@register.filter
def came_of_it(happening: Happening) -> Words:
    """The outcome of an entry of the timeline, or an empty text."""
    if happening.kind is Kind.EVENT:
        return happening.outcome
    if happening.kind is Kind.SIGN_IN_FAILED:
        return hint_of(happening.detail)
    return ""


@register.filter
def grant_state(grant: TokenGrant | None) -> str:
    """Whether the site can still ask the service about the person."""
    if grant is None:
        return _("None. The person has to sign in again before anything can be re-fetched.")
    if grant.needs_reauthorization:
        return _("Dead. The person's next visit offers to consent again.")
    if grant.refresh_expires_at is None:
        return _("Held.")
    span = distance(grant.refresh_expires_at)
    return _("Held; runs out %(span)s unless it is used.") % {"span": span}
