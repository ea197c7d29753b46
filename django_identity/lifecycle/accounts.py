"""Create the site's users, and write the fields that the policy returns."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError

from django_identity import database, exceptions, policy
from django_identity.conf import Application
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity
from django_identity.service.answers import KycStatus, Profile


def sign_up(
    application: Application, *, profile: Profile, kyc: KycStatus | None
) -> AbstractBaseUser:
    """Create a user, if the policy allows it and the e-mail address is free.

    Two sign-ups with one e-mail address at the same moment are stopped by the user model, if its
    address is unique. Raises ``EmailTaken`` or ``LinkingRefused``. Must run inside a transaction.
    """
    site = policy.load(application.policy)
    holder = site.account_with_email(profile.email)
    if holder is not None:
        if _only_identity_opens(holder):
            raise exceptions.EmailTaken(code="email_held_by_identity")
        raise exceptions.EmailTaken
    if not site.may_sign_up(profile=profile, kyc=kyc):
        raise exceptions.LinkingRefused(code="sign_up_refused")
    fields = policy.writable(
        site.new_user_fields(profile=profile, kyc=kyc), method="new_user_fields"
    )
    user = get_user_model()(**fields)
    user.set_unusable_password()
    refused = _leave_out_refused(user, {*policy.PROFILE_FIELDS} & fields.keys())
    if refused:
        raise exceptions.LinkingRefused(
            f"the user model refuses: {', '.join(sorted(refused))}", code="user_fields_refused"
        )
    return _create({name: getattr(user, name) for name in fields})


def _create(fields: Mapping[str, Any]) -> AbstractBaseUser:
    """Create the user as the site does: by the manager's ``create_user``, if it has one."""
    model = get_user_model()
    manager: Any = model._default_manager.db_manager(database.alias())
    if hasattr(manager, "create_user"):
        user: AbstractBaseUser = manager.create_user(**fields, password=None)
        if not user.has_usable_password():
            return user
    else:
        user = model(**fields)
    user.set_unusable_password()
    user.save(using=database.alias())
    return user


def _only_identity_opens(user: AbstractBaseUser) -> bool:
    """Whether the account was made for an identity and has no password."""
    if user.has_usable_password():
        return False
    return LinkedIdentity.objects.filter(user_id=user.pk, account_made=True).exists()


def _leave_out_refused(user: AbstractBaseUser, optional: set[str]) -> set[str]:
    """Cut or leave out what the user model refuses. Returns the fields that it still refuses."""
    fields: dict[str, Any] = {name: user._meta.get_field(name) for name in optional}
    for name, field in fields.items():
        longest, value = getattr(field, "max_length", None), getattr(user, name)
        if longest and isinstance(value, str) and name != user.get_email_field_name():
            setattr(user, name, value[:longest].rstrip())
    for name in _refused_fields(user, unique=False) & optional:
        setattr(user, name, fields[name].get_default())
    return _refused_fields(user, unique=True)


def _refused_fields(user: AbstractBaseUser, *, unique: bool) -> set[str]:
    try:
        user.full_clean(exclude=["password"], validate_unique=unique, validate_constraints=unique)
    except ValidationError as invalid:
        return {*invalid.message_dict}
    return set()


def overwrite_fields(
    application: Application, user: AbstractBaseUser, *, profile: Profile, kyc: KycStatus | None
) -> None:
    """Write the policy's fields to a user who signs in again. The default is none.

    The rules are those for a new user. A field that breaks a rule keeps its old value, and the log
    names the field.
    """
    site = policy.load(application.policy)
    wanted = policy.writable(
        site.changed_user_fields(user, profile=profile, kyc=kyc), method="changed_user_fields"
    )
    changed = {name: value for name, value in wanted.items() if getattr(user, name) != value}
    written = _set_valid(site, user, changed)
    if written:
        user.save(update_fields=written)
    refused = sorted(changed.keys() - written)
    if refused:
        names = ",".join(refused)
        facts = {"application": application.alias, "fields": names}
        log(LogEvent.USER_FIELDS_REFUSED, level=logging.WARNING, **facts)


def _set_valid(
    site: policy.IdentityPolicy, user: AbstractBaseUser, changed: Mapping[str, Any]
) -> set[str]:
    """Set the fields of ``changed`` that break no rule. Returns their names."""
    before = {name: getattr(user, name) for name in changed}
    names = set(changed)
    email = changed.get(user.get_email_field_name())
    owner = site.account_with_email(str(email)) if email else None
    if owner is not None and owner.pk != user.pk:
        # The new e-mail address belongs to another account.
        names.remove(user.get_email_field_name())
    while names:
        for name in changed:
            setattr(user, name, changed[name] if name in names else before[name])
        broken = _broken_rules(user, names)
        if not broken:
            break
        # A rule about several fields names none of them. Then no field is written.
        names -= (names & broken) or names
    for name in changed.keys() - names:
        setattr(user, name, before[name])
    return names


def _broken_rules(user: AbstractBaseUser, names: set[str]) -> set[str]:
    """The fields among ``names`` that fail the user model's validation.

    Uniqueness is checked for all fields, because a changed and an unchanged field may collide
    together.
    """
    others = {field.name for field in user._meta.fields if not {field.name, field.attname} & names}
    broken: set[str] = set()
    for validate in (
        partial(user.clean_fields, exclude=others),
        user.clean,
        user.validate_unique,
        user.validate_constraints,
    ):
        try:
            validate()
        except ValidationError as invalid:
            broken |= invalid.update_error_dict({}).keys()
    # Errors of a foreign key have its name, but the policy may have used its column's name.
    columns = {field.name: field.attname for field in user._meta.fields}
    return {name if name in names else columns.get(name, name) for name in broken}
