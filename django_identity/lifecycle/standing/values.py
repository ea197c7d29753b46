"""The meaning of a proven claim's value. A claim can be proven and still be false."""

from collections.abc import Mapping
from typing import Any

from django_identity import conf, policy


def said(claim_type: str, value: Any, *, application: str) -> bool | str | None:
    """What a gate may require of the value: a text or ``True``. None if the claim is denied."""
    return text_in(claim_type, value, application=application) or (
        True if affirms(claim_type, value) else None
    )


def text_in(claim_type: str, value: Any, *, application: str) -> str:
    """The text that a gate with a value compares. Empty if there is none, or a denial.

    The policy of ``application`` reads it. The policy is not called for a value that denies.
    """
    if value is None or value is False:
        return ""
    if isinstance(value, Mapping) and _denies(claim_type, value):
        return ""
    site = policy.load(conf.application(application).policy)
    text = site.claim_value(claim_type, value)
    return text if isinstance(text, str) else ""


def affirms(claim_type: str, value: Any) -> bool:
    """Whether the value opens a gate without a value.

    It is exactly ``true``, or an object whose ``verified`` or ``value`` is, and no member of which
    denies the claim or contradicts another.
    """
    if not isinstance(value, Mapping):
        return value is True
    if _denies(claim_type, value) or policy.contradicts_itself(claim_type, value):
        return False
    return value.get("verified") is True or value.get("value") is True


def _denies(claim_type: str, value: Mapping[str, Any]) -> bool:
    """Whether the object denies the claim: not verified, or verified with the answer no."""
    if "verified" in value and value["verified"] is not True:
        return True
    return not all(map(_is_yes, policy.members_said(claim_type, value)))


def _is_yes(member: Any) -> bool:
    return bool(member) and not (isinstance(member, str) and member.strip().lower() == "false")
