"""Create the site's users by the fields that the policy returns, and let it change them."""

import logging
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError

from django_identity import database, exceptions, policy, uniqueness
from django_identity.lifecycle.arriving.addresses import address_of, spellings_of
from django_identity.lifecycle.ground import notices, withdrawal
from django_identity.logs import LogEvent, log_trouble
from django_identity.policy import Claims
from django_identity.service.answers import KycStatus, Profile

#: What is wrong with a value, and not with the site's code.
VALUES_REFUSED = (ValidationError, exceptions.EmailTaken)
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

#: Fields of the user model, and what the policy wants in them.
Fields = dict[str, Any]


def usable(profile: Profile) -> Profile:
    """The profile with its e-mail address by ``address_of``."""
    return replace(profile, email=address_of(profile.email))


def require_free_address(profile: Profile) -> None:
    """Raises ``EmailTaken`` if another account has the profile's address."""
    _require_free(usable(profile).email)


def sign_up(profile: Profile, kyc: KycStatus | None) -> AbstractBaseUser:
    """Create a user with the fields of the policy, by the site's ``create_user``.

    Its password is unusable. Two sign-ups with one e-mail address at the same moment are stopped by
    the user model, if its address is unique. Raises ``EmailTaken`` or ``LinkingRefused``. Must run
    inside a transaction.
    """
    profile = usable(profile)
    fields = policy.of_site().new_user_fields(profile=profile, kyc=kyc)
    created = _created(policy.writable(fields))
    # Policy, model and manager may each have made another address of it.
    if database.email_of(created) != profile.email:
        _require_free(database.email_of(created), besides=created)
    return created


def _created(fields: Fields) -> AbstractBaseUser:
    """A user of the site's own ``create_user``, with an unusable password."""
    create_user = manager().create_user
    of_profile = policy.profile_fields().values()
    given = dict.fromkeys(demanded_by(create_user) & {*of_profile}, "")
    arguments = given | _validated(fields)
    created: AbstractBaseUser = create_user(**arguments, password=None)
    if created.has_usable_password():
        created.set_unusable_password()
        created.save()
    # Managers make an empty text of an address that is not there.
    emptied = _empty_as_null(created)
    if emptied:
        created.save(update_fields=emptied)
    return created


def demanded_by(create_user: Callable[..., Any]) -> set[str]:
    """What ``create_user`` demands by name: its parameters without a default."""
    parameters = signature(create_user).parameters.values()
    named = [each for each in parameters if each.kind in BY_NAME]
    return {each.name for each in named if each.default is Parameter.empty}


def _empty_as_null(user: AbstractBaseUser) -> list[str]:
    """Let unique texts that are empty be NULL, if they may. Returns their names.

    Two people without an address would share the empty text, and can both have NULL.
    """
    names = []
    for column in user._meta.concrete_fields:
        # Not by ``getattr``, which would read a generated or a deferred column.
        is_empty = vars(user).get(column.attname) == "" and not column.generated
        if is_empty and column.null and uniqueness.is_named(column):
            setattr(user, column.attname, None)
            names.append(column.name)
    return names


def _validated(fields: Fields) -> Fields:
    """The values of ``fields`` as the user model's ``clean`` leaves them.

    What the service said and the model refuses is left out. Raises ``LinkingRefused``.
    """
    user = get_user_model()(**fields)
    user.set_unusable_password()
    of_profile = fields.keys() & {*policy.profile_fields().values()}
    for name in refused_of_given(user, fields) & of_profile:
        column: Any = user._meta.get_field(name)
        setattr(user, name, column.get_default())
    refused = _refused_of(user, fields)
    if refused:
        detail = f"the user model refuses: {', '.join(sorted(refused))}"
        raise exceptions.LinkingRefused(detail, code="user_fields_refused")
    return {name: getattr(user, name) for name in fields}


def update(
    user: AbstractBaseUser,
    *,
    profile: Profile,
    kyc: KycStatus | None,
    claims: Claims,
) -> str:
    """Let the policy change a user who signs in again, in a savepoint.

    If the policy raises an error, or another account has the new e-mail address, nothing is changed
    and the log says so. Returns the former address, if another one has taken its place. Raises
    ``ConfigurationError`` if the policy changed what it must not.
    """
    rules = policy.of_site()
    if type(rules).update_user is policy.NO_UPDATE:
        return ""
    before = database.account(user.pk)
    try:
        # What is no address is refused below: an empty text would be stored.
        email = address_of(profile.email) or profile.email
        profile = replace(profile, email=email)
        with database.atomic():
            update_user: Callable[..., object] = rules.update_user
            answer = update_user(user, profile=profile, kyc=kyc, claims=claims)
            _require_permitted(user, before, answer)
            _require_usable_address(user, before)
    except exceptions.ConfigurationError:
        raise
    except Exception as error:  # the site's own code may raise anything
        if database.is_broken(error):
            raise
        level = logging.ERROR
        if isinstance(error, VALUES_REFUSED):
            level = logging.WARNING
        log_trouble(LogEvent.USER_UPDATE_FAILED, error, level=level)
        user.pk = before.pk
        database.read_again(user)
    former = database.email_of(before)
    if former == database.email_of(user):
        return ""
    return former


def _require_permitted(
    user: AbstractBaseUser,
    before: AbstractBaseUser,
    answer: object,
) -> None:
    """Read the user again. Raises ``ConfigurationError`` for what no policy may change."""
    if answer is not None:
        returned = type(answer).__name__
        raise exceptions.ConfigurationError(
            f"The policy's update_user returned {returned}, not None.",
        )
    if user.pk == before.pk:
        database.read_again(user)
    names = policy.never_written()
    changed = sorted(
        name
        for name in names
        if getattr(user, name, None) != getattr(before, name, None)
    )
    if changed:
        raise exceptions.ConfigurationError(
            f"An IdentityPolicy may not write {', '.join(changed)}.",
        )


def _require_usable_address(user: AbstractBaseUser, before: AbstractBaseUser) -> None:
    """Raises ``ValidationError`` or ``EmailTaken`` for a new address that cannot be the user's."""
    stored = database.email_of(user)
    if stored in ("", database.email_of(before)):
        return
    address = address_of(stored)
    if not address:
        raise ValidationError("no e-mail address")
    _require_free(address, besides=user)


def with_address(user: AbstractBaseUser, address: str) -> AbstractBaseUser:
    """A copy of ``user`` with this e-mail address, not to be saved."""
    other = copy(user)
    setattr(other, user.get_email_field_name(), address)
    return other


def _require_free(
    address: str,
    *,
    besides: AbstractBaseUser | None = None,
) -> None:
    """Raises ``EmailTaken`` if an account ``besides`` this one has the address."""
    if not address:
        return
    for spelling in spellings_of(address):
        owner: object = policy.of_site().account_with_email(spelling)
        if not isinstance(owner, AbstractBaseUser | None):
            returned = type(owner).__name__
            raise exceptions.ConfigurationError(
                f"The policy's account_with_email returned {returned}, not an account or None.",
            )
        if owner is None:
            continue
        if besides is not None and owner.pk == besides.pk:
            continue
        if withdrawal.waits_for_erasure(owner.pk):
            raise exceptions.LinkingRefused(code="erasure_pending")
        taken = exceptions.EmailTaken()
        taken.masked = notices.masked_address(address)
        raise taken


def manager() -> Any:
    """The manager of the site's users, where they are written."""
    return get_user_model()._default_manager.db_manager(database.alias())


def _refused_of(user: AbstractBaseUser, given: Fields) -> set[str]:
    """The names of the fields that the user model refuses, in the steps of ``full_clean``.

    What the policy has not ``given`` is the model's own to fill, which only ``save`` completes.
    """
    own = database.field_names(user) - given.keys()
    refused = refused_of_given(user, given) or refused_by(user.clean)
    if refused:
        return refused
    # Django's ``clean`` makes an empty text of an address that is not there.
    _empty_as_null(user)
    for rule in (user.validate_unique, user.validate_constraints):
        refused |= refused_by(partial(rule, exclude=own))
    return refused


def refused_of_given(user: AbstractBaseUser, given: Collection[str]) -> set[str]:
    """The names of the ``given`` fields whose values the user model refuses."""
    others = database.field_names(user) - {*given}
    return refused_by(partial(user.clean_fields, exclude=others))


def refused_by(check: Callable[[], object]) -> set[str]:
    """The names of the fields that a check of the user model refuses."""
    try:
        check()
    except ValidationError as invalid:
        return {*invalid.update_error_dict({})}
    return set()
