"""Why no call is made, or none can be made any more, for a linked identity."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_identity.exceptions.root import IdentityError, Recovery, Stage
from django_identity.exceptions.service import ServiceUnavailable


class ReauthorizationNeeded(IdentityError):
    """There is no token to be had: the person has to go through the service once more."""

    code = "reauthorization_needed"
    stage = Stage.TOKEN
    recovery = Recovery.RESTART
    public_message = _("Your permission has run out. Please sign in with identity once more.")


class RefreshPending(ServiceUnavailable):
    """The refresh token was sent a moment ago and no answer is known yet; nothing was sent now."""

    may_have_arrived = False
    code = "refresh_pending"


class ServiceAway(ServiceUnavailable):
    """The last calls of all workers failed, so this one was not made."""

    may_have_arrived = False
    code = "service_away"


class BudgetSpent(ServiceUnavailable):
    """The calls that all workers may make together are spent for now; this one was not made."""

    may_have_arrived = False
    code = "budget_spent"
