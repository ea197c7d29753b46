"""The table of reasons: what pages, the API and the admin say about a closed gate.

A text may have the places ``service`` and ``site``, and ``when``,
``day``, ``claim`` and ``held`` of the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Advice:
    """What a page says about a reason, and its button. ``hint`` is for the operator.

    ``first``: what the person must do at the service before a sign-in opens the gate.
    """

    title: Text
    sentence: Text
    step: Text
    button: Text
    hint: Text
    first: Text = ""

    @property
    def helps(self) -> bool:
        """Whether the sign-in at the service opens the gate."""
        return not self.first


_AGAIN = _("Check again with %(service)s")
_VERIFY = _("Get verified")
_THERE = _("Get verified there, then check again here.")

# fmt: off
REASONS: Mapping[str, Advice] = {
    "not_linked": Advice(
        _("Not connected yet"), _("Your account is not connected to %(service)s."),
        _("Connect it: you decide there what %(site)s may know."), _("Connect %(service)s"),
        _("No identity is linked to the account.")),
    "not_set_up": Advice(
        _("Not connected yet"), _("Your account is not connected to %(service)s."),
        _("Connect it: you decide there what %(site)s may know."), _("Connect %(service)s"),
        _("The settings have no such application in this environment.")),
    "consent_revoked": Advice(
        _("You took back your consent"),
        _("You took it back %(when)s, so the proofs about you were deleted."),
        _("Allow it again, and they come back."), _("Allow again"),
        _("The consent is revoked. The person has to sign in and consent again.")),
    "ended_by_site": Advice(
        _("Your connection was ended"),
        _("%(site)s ended your connection on %(day)s, and the proofs about you were deleted."),
        _("You can connect again."), _("Connect again"),
        _("An operator ended the connection. The person can connect again.")),
    "permission_ended": Advice(
        _("Your permission has ended"),
        _("%(site)s can no longer check your details with %(service)s."),
        _("Check again before your proofs run out, or pages that need them will close."), _AGAIN,
        _("The grant is dead. The person has to consent again.")),
    "permission_ends": Advice(
        _("Your permission ends soon"),
        _("On %(day)s %(site)s loses the permission to check your details."),
        _("Check again, and it continues."), _AGAIN, _("The grant ends soon.")),
    "code_alone": Advice(
        _("You were verified with a code"),
        _("A code shares your verification level, and no proofs."),
        _("To bring the proofs too, continue with %(service)s."),
        _("Continue with %(service)s"),
        _("A Connect code alone verified this person, and a code brings no proofs. The person has "
          "to sign in with identity.")),
    "not_held": Advice(
        _("Not confirmed yet"),
        _("You are connected, but %(service)s has not confirmed this about you."),
        _THERE, _AGAIN,
        _("No verified credential proves the claim. The person may not have verified it, or the "
          "application does not ask for it."), _VERIFY),
    "run_out": Advice(
        _("Your proof ran out"), _("It has to be confirmed again from time to time."),
        _("Check again: it takes a few seconds."), _AGAIN,
        _("The proof ran out and was not replaced.")),
    "revoked": Advice(
        _("This proof was revoked"),
        _("You revoked it, or the verification behind it no longer holds."),
        _("Get verified there again, then check again here."), _AGAIN,
        _("The claim is revoked. The person has to verify it again."), _VERIFY),
    "other_value": Advice(
        _("Your proof says something else"), _("%(claim)s: %(held)s."),
        _("If that is out of date, have it corrected there, then check again here."), _AGAIN,
        _("Proven, but its value is not true."), _("Open %(service)s")),
    "not_verified": Advice(
        _("Not verified yet"), _("You are connected, but %(service)s has not verified you."),
        _THERE, _AGAIN, _("The KYC status is not “verified”."), _VERIFY),
    "lower_level": Advice(
        _("You are verified at a lower level"), _("You have: %(held)s."),
        _("Continue the verification there, then check again here."), _AGAIN,
        _("The KYC level is lower."), _("Continue the verification")),
}
# fmt: on
