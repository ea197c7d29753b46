"""Create the site's users, and write the fields that the policy returns."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError

from django_identity import policy
from django_identity.conf import Application
from django_identity.exceptions import EmailTaken, SignUpRefused
from django_identity.service.messages import KycStatus, Profile


def sign_up(
    application: Application, *, profile: Profile, kyc: KycStatus | None
) -> AbstractBaseUser:
    """Create a user, if the policy allows it and the e-mail address is free.

    Raises ``EmailTaken`` or ``SignUpRefused``.
    """
    site = policy.load(application.policy)
    if site.account_with_email(profile.email) is not None:
        raise EmailTaken
    if not site.may_sign_up(profile=profile, kyc=kyc):
        raise SignUpRefused
    fields = policy.writable(site.new_user_fields(profile=profile, kyc=kyc))
    user = get_user_model()(**fields)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as invalid:
        names = ", ".join(sorted(invalid.message_dict))
        raise SignUpRefused(f"the user model does not take these fields: {names}") from None
    user.save()
    return user


def overwrite_fields(
    application: Application, user: AbstractBaseUser, *, profile: Profile, kyc: KycStatus | None
) -> None:
    """Write the policy's fields to a user who signs in again. The default is none."""
    site = policy.load(application.policy)
    fields = policy.writable(site.changed_user_fields(user, profile=profile, kyc=kyc))
    if not fields:
        return
    for name, value in fields.items():
        setattr(user, name, value)
    user.save(update_fields=list(fields))
