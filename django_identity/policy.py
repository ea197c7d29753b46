"""``IdentityPolicy``: the class that a site subclasses to change decisions of the package.

Name the subclass in ``DJANGO_IDENTITY["default"]["POLICY"]``. The package calls each method at one
point and follows its result. No method decides whether an identity is proven.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils.module_loading import import_string

from django_identity import anonymisation
from django_identity.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from django_identity.models import LinkedIdentity
    from django_identity.service.connect_answer import ConnectAnswer
    from django_identity.service.messages import KycStatus, Profile

FIELDS_NEVER_WRITTEN = frozenset({"is_staff", "is_superuser", "is_active", "password"})
PROFILE_FIELDS = ("email", "first_name", "last_name")


class IdentityPolicy:
    """The defaults: anyone may sign up, and no field of an existing user is overwritten."""

    #: Whether somebody who is not signed in may come in with a Connect code (it can be phished).
    connect_may_sign_in: bool = False
    #: What becomes of the site's user when the person is erased: ``"anonymise"`` or ``"delete"``.
    erasure: str = "anonymise"

    def may_sign_up(self, *, profile: Profile, kyc: KycStatus | None) -> bool:
        """Whether a person with no account here gets one."""
        return True

    def may_link(self, user: AbstractBaseUser, profile: Profile, *, by_code: bool) -> bool:
        """Whether the account of ``user`` gets this person's identity. Not asked of new accounts.

        ``by_code``: by a Connect code, which may be somebody else's. Staff are not linked by one.
        Asked again, without ``by_code``, when the full sign-in confirms what a code had linked.
        """
        return not (by_code and _is_privileged(user))

    def may_sign_in(self, user: AbstractBaseUser, *, by_code: bool) -> bool:
        """Whether an identity signs ``user`` in here.

        ``by_code``: nothing but a Connect code stands behind it. Staff do not sign in by one.
        """
        return not (by_code and _is_privileged(user))

    def link_notice(
        self, user: AbstractBaseUser, identity: LinkedIdentity, *, person: str
    ) -> EmailMessage | None:
        """The mail to ``user`` about a link that was just made, or None to send none.

        ``person``: whose identity it is, masked; empty if that is not known. By default the two
        templates ``django_identity/link_notice_subject.txt`` and ``link_notice.txt`` are sent to
        the account's address, if it has one.
        """
        address = getattr(user, get_user_model().get_email_field_name(), "")
        if not address:
            return None
        context = {"user": user, "identity": identity, "person": person}
        subject = render_to_string("django_identity/link_notice_subject.txt", context)
        text = render_to_string("django_identity/link_notice.txt", context)
        return EmailMessage(" ".join(subject.split()), text, to=[address])

    def new_user_fields(self, *, profile: Profile, kyc: KycStatus | None) -> Mapping[str, Any]:
        """The fields of a new user: the profile's, as far as the user model has them."""
        model = get_user_model()
        fields: dict[str, Any] = {model.USERNAME_FIELD: f"identity-{uuid.uuid4().hex}"}
        for name in PROFILE_FIELDS:
            if _has_field(name) and getattr(profile, name):
                fields[name] = getattr(profile, name)
        return fields

    def changed_user_fields(
        self, user: AbstractBaseUser, *, profile: Profile, kyc: KycStatus | None
    ) -> Mapping[str, Any]:
        """The fields to overwrite when ``user`` signs in again. The default is none."""
        return {}

    def account_with_email(self, email: str) -> AbstractBaseUser | None:
        """The account that already has this address, in any case of its letters, if there is one.

        Such a person signs in the old way first and links then; accounts are never merged silently.
        """
        model = get_user_model()
        field = model.get_email_field_name()
        if not email or not _has_field(field):
            return None
        return model._default_manager.filter(**{f"{field}__iexact": email}).first()

    def may_accept_connect_answer(self, answer: ConnectAnswer) -> bool:
        """Whether what a Connect code brought is taken; ``answer.received`` is it as it came.

        For a site that knows how ``answer.signature`` is made: this package does not check it.
        """
        return True

    def user_of_principal(self, principal: object) -> AbstractBaseUser | None:
        """The user whom ``principal`` represents, or None.

        Gates call this method if ``request.user`` is not an instance of the user model: the holder
        of a stateless token, an API key, a device. The default is None, because the primary keys of
        such objects are not those of users.
        """
        return None

    def erase_user(self, user: AbstractBaseUser) -> None:
        """Erase the site's user, in the transaction that deletes the package's data.

        By default the account is anonymised and disabled, so that related rows stay valid;
        ``erasure = "delete"`` deletes the account. Its files are deleted in both cases. Extend this
        method to erase the site's other data about the person. If the method raises an error, the
        transaction is rolled back and the erasure is retried.
        """
        if self.erasure == "delete":
            user.delete()
            anonymisation.delete_files(user)
        else:
            anonymisation.anonymise(user)

    def local_sign_in_url(self) -> str | None:
        """Where a person with an account signs in the old way, if the site has such a page."""
        return getattr(settings, "IDENTITY_LOCAL_SIGN_IN_URL", None)


@cache
def load(dotted_path: str) -> IdentityPolicy:
    """The site's policy, created once. Raises ``ConfigurationError`` if it cannot be loaded."""
    try:
        chosen = import_string(dotted_path)
    except ImportError as error:
        raise ConfigurationError(f"POLICY {dotted_path!r} cannot be imported.") from error
    if not (isinstance(chosen, type) and issubclass(chosen, IdentityPolicy)):
        raise ConfigurationError(f"POLICY {dotted_path!r} is not an IdentityPolicy.")
    return chosen()


def writable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``fields`` if a policy may write all of them.

    Raises ``ConfigurationError`` for staff, superuser, active, password and the primary key.
    """
    primary_key = get_user_model()._meta.pk
    forbidden = FIELDS_NEVER_WRITTEN | {"pk", "id", primary_key.name, primary_key.attname}
    refused = sorted(forbidden & fields.keys())
    if refused:
        raise ConfigurationError(f"An IdentityPolicy may not write {', '.join(refused)}.")
    return dict(fields)


def _is_privileged(user: AbstractBaseUser) -> bool:
    return bool(getattr(user, "is_staff", False) or getattr(user, "is_superuser", False))


def _has_field(name: str) -> bool:
    try:
        get_user_model()._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True
