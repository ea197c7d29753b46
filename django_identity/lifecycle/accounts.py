"""Create the site's users, and write the fields that the policy returns."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError

from django_identity import database, exceptions, policy
from django_identity.conf import Application
from django_identity.logs import LogEvent, log
from django_identity.service.answers import KycStatus, Profile


def sign_up(application: Application, profile: Profile, kyc: KycStatus | None) -> AbstractBaseUser:
    """Create a user, if the policy allows it and the e-mail address is free.

    The site's ``create_user`` makes it, without a password. Two sign-ups with one e-mail address at
    the same moment are stopped by the user model, if its address is unique. Raises ``EmailTaken``
    or ``LinkingRefused``. Must run inside a transaction.
    """
    site = policy.load(application.policy)
    if site.account_with_email(profile.email) is not None:
        raise exceptions.EmailTaken
    if not site.may_sign_up(profile=profile, kyc=kyc):
        raise exceptions.LinkingRefused(code="sign_up_refused")
    fields = policy.writable(site.new_user_fields(profile=profile, kyc=kyc), "new_user_fields")
    user = get_user_model()(**fields)
    user.set_unusable_password()
    # What the service said and the user model refuses is left out.
    for name in _refused(user.clean_fields) & fields.keys() & {*policy.PROFILE_FIELDS}:
        field: Any = user._meta.get_field(name)
        setattr(user, name, field.get_default())
    if refused := ", ".join(sorted(_refused(user.full_clean))):
        detail = f"the user model refuses: {refused}"
        raise exceptions.LinkingRefused(detail, code="user_fields_refused")
    manager: Any = get_user_model()._default_manager.db_manager(database.alias())
    # With the values that ``clean`` may have normalised.
    wanted = {name: getattr(user, name) for name in fields}
    created: AbstractBaseUser = manager.create_user(**wanted, password=None)
    if created.has_usable_password():
        created.set_unusable_password()
        created.save()
    return created


def overwrite_fields(
    application: Application, user: AbstractBaseUser, *, profile: Profile, kyc: KycStatus | None
) -> None:
    """Write the policy's fields to a user who signs in again. The default is none.

    If the user model refuses the user then, or another account has the e-mail address, no field is
    written, and the log names those that are refused.
    """
    site = policy.load(application.policy)
    wanted = policy.writable(
        site.changed_user_fields(user, profile=profile, kyc=kyc), "changed_user_fields"
    )
    changed = {name: value for name, value in wanted.items() if getattr(user, name) != value}
    if not changed:
        return
    for name, value in changed.items():
        setattr(user, name, value)
    email = user.get_email_field_name()
    owner = site.account_with_email(changed[email]) if changed.get(email) else None
    is_taken = owner is not None and owner.pk != user.pk
    refused = {email} if is_taken else _refused(user.full_clean)
    if not refused:
        user.save(update_fields=changed)
        return
    user.refresh_from_db(fields=changed)
    facts = {"application": application.alias, "fields": ",".join(sorted(refused))}
    log(LogEvent.USER_FIELDS_REFUSED, level=logging.WARNING, **facts)


def _refused(check: Callable[[], object]) -> set[str]:
    """The names of the fields that a check of the user model refuses."""
    try:
        check()
    except ValidationError as invalid:
        return {*invalid.update_error_dict({})}
    return set()
