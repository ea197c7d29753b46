"""``IdentityPolicy``: the class that a site subclasses to change decisions of the package.

Name the subclass in ``DJANGO_IDENTITY["POLICY"]``. The package calls each method at one
point and follows its result. Whether an identity is proven is decided elsewhere.

A policy may refuse

- somebody who arrives: ``may_sign_up``, ``may_link``, ``may_sign_in`` (``arriving.questions``),
  ``account_with_email`` (``arriving.accounts``), ``may_accept_connect_answer``
  (``arriving.connect``);
- a disconnection: ``has_other_way_in`` (``leaving.disconnecting``);
- an erasure: ``people_may_erase``, and of the account ``keeps_account``
  (``leaving.pending_erasures``);
- documents: ``may_read_documents`` (``documents.reading``);
- a claim's value, so that its gate stays closed: ``claim_value`` (``ground.values``).

How an error that a policy raises leaves the package: ``boundary``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.module_loading import import_string

from django_identity import anonymisation, conf, database
from django_identity.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from django_identity.models import LinkedIdentity
    from django_identity.service.answers import KycStatus, Profile
    from django_identity.service.connect import ConnectAnswer

#: Claim name -> ``True`` or its text, of every claim that opens a gate: as ``claims_of`` has it.
Claims = Mapping[str, bool | str]

FIELDS_NEVER_WRITTEN = frozenset({"is_staff", "is_superuser", "is_active", "password"})
# Claim -> the member of its value with the claim's own noun.
NOUNS: Mapping[str, str] = {"country_resident": "country"}


class IdentityPolicy:
    """The defaults: anyone may sign up, and existing users stay as they are."""

    #: The site's name on pages and in e-mails. By default that of ``django.contrib.sites``.
    site_name: str | Promise = ""
    #: Why the site asks for a scope, a claim or a level: ``{"age_over_18": _("…")}``; or why it
    #: refuses somebody, by the code of the error: ``{"sign_up_refused": _("…")}``.
    reasons: Mapping[str, str | Promise] = {}
    #: The site's own pages, as addresses or URL names; the package's pages link to them.
    help_url: str | None = None
    privacy_url: str | None = None
    contact_url: str | None = None
    #: Where a person sets a password, before the identity that made the account is disconnected.
    set_password_url: str | None = None
    #: Whether people may erase themselves on the page of their details.
    people_may_erase: bool = True
    #: How an erasure treats the site's user: ``"anonymise"`` or ``"delete"``.
    erasure: Literal["anonymise", "delete"] = "anonymise"

    # ``claims``, where a method has it, are the claims that open gates for this person once what
    # they brought is stored. They are empty for a Connect code. A person who is new here is asked
    # about twice: before anything is written, and once more when all is stored.
    # After a refusal nothing of a new person or a new link is stored. The started sign-in, or the
    # code, keeps the code of the refusal as its ``outcome`` until upkeep deletes it.

    def may_sign_up(
        self,
        *,
        profile: Profile,
        kyc: KycStatus | None,
        claims: Claims,
    ) -> bool:
        """Whether a new person gets an account."""
        return True

    def may_link(
        self,
        user: AbstractBaseUser,
        profile: Profile,
        *,
        claims: Claims,
    ) -> bool:
        """Whether to link this person's identity to the existing account of ``user``.

        By default a Connect code (``profile.by_code``) does not link staff: it may be another
        person's code. The method is called again, without ``by_code``, when the full sign-in
        confirms a link by code.
        """
        return not (profile.by_code and is_privileged(user))

    def may_sign_in(self, user: AbstractBaseUser, *, claims: Claims) -> bool:
        """Whether an identity may sign ``user`` in.

        What a returning person brought is stored in either case.
        """
        return True

    def has_other_way_in(self, user: AbstractBaseUser) -> bool:
        """Whether ``user`` can sign in without the identity that made the account.

        Only then may that identity be disconnected. By default: whether the account has a password.
        """
        return user.has_usable_password()

    def notice(
        self,
        user: AbstractBaseUser,
        *,
        change: str,
        **context: Any,
    ) -> EmailMessage | None:
        """The e-mail to ``user`` about a change of their connection, or None to send none.

        ``change``: ``"linked"`` (with ``identity``, and ``person``, the masked name of whose it
        is), ``"renewed"``, ``"address"``, ``"disconnected"``, or ``"revoked"`` by an operator.
        ``context`` has the names of ``service`` and site too, and the time ``at``. By default
        ``link_notice.txt`` or ``change_notice.txt`` goes to the account's e-mail address, if it has
        one. If a sign-in has changed that address, ``address_changed`` is true, and the method is
        called once more for a ``user`` with the former one.
        """
        address = database.email_of(user)
        if not address:
            return None
        kind = "link" if change == "linked" else "change"
        name = f"django_identity/{kind}_notice"
        context |= {"user": user, "change": change}
        subject = " ".join(render_to_string(f"{name}_subject.txt", context).split())
        body = render_to_string(f"{name}.txt", context)
        return EmailMessage(subject, body, to=[address])

    def new_user_fields(
        self,
        *,
        profile: Profile,
        kyc: KycStatus | None,
    ) -> Mapping[str, Any]:
        """The fields of a new user, from the profile, if the user model has them."""
        model = get_user_model()
        fields: dict[str, Any] = {model.USERNAME_FIELD: f"identity-{uuid.uuid4().hex}"}
        known = database.field_names(model)
        for member, name in profile_fields().items():
            text = getattr(profile, member)
            if text and name in known:
                fields[name] = text
        return fields

    def update_user(
        self,
        user: AbstractBaseUser,
        *,
        profile: Profile,
        kyc: KycStatus | None,
        claims: Claims,
    ) -> None:
        """Change and save ``user``, who signs in again. By default the account stays as it is.

        It runs in a savepoint of the sign-in. If it raises an error, the savepoint is rolled back,
        the log says so, and the person is signed in.
        """

    def account_with_email(self, email: str) -> AbstractBaseUser | None:
        """The account with this e-mail address, ignoring case, or None.

        ``email`` is as the user model stores it. Accounts that the site's default manager hides
        count too. With django-allauth, an account's verified addresses do.

        The person must sign in with that account first and then link. Accounts are never merged
        silently.
        """
        model = get_user_model()
        field = model.get_email_field_name()
        if not email or field not in database.field_names(model):
            return None

        users = database.all_users()
        holder = users.filter(**{f"{field}__iexact": email}).first()
        if holder is not None or not apps.is_installed("allauth.account"):
            return holder
        addresses = apps.get_model("account", "EmailAddress")._base_manager  # type: ignore[misc]  # allauth's
        here = addresses.using(database.alias())
        verified = here.filter(email__iexact=email, verified=True)
        return users.filter(pk__in=verified.values("user_id")).first()

    def may_accept_connect_answer(self, answer: ConnectAnswer) -> bool:
        """Whether to accept the service's answer to a Connect code.

        ``answer.received`` is the complete answer. A site that knows how ``answer.signature`` is
        made can check it here.
        """
        return True

    def claim_value(self, claim_type: str, value: Any) -> str | None:
        """The text in a claim's value that a gate with a value compares, or None.

        ``value`` is what the service signed. The method is called for affirming values alone. By
        default the text is the value itself; in an object ``value``, the claim's own noun
        (``country`` of ``country_resident``) or the member with the claim's name. None if two of
        them differ.
        """
        if not isinstance(value, Mapping):
            if isinstance(value, str):
                return value
            return None
        if contradicts_itself(claim_type, value):
            return None
        for member in members_said(claim_type, value):
            if isinstance(member, str):
                return member
        return None

    def may_read_documents(
        self,
        asked_by: AbstractBaseUser,
        identity: LinkedIdentity,
        *,
        scope: str,
    ) -> bool:
        """Whether ``asked_by`` may read the documents of ``identity``, or about them.

        ``scope``: ``"documents:read"`` or ``"documents:metadata"``. The consent must cover it too.
        By default people read only their own documents.
        """
        return bool(asked_by.pk == identity.user_id)

    def keeps_account(self, user: AbstractBaseUser, *, made_for_identity: bool) -> bool:
        """Whether an erasure of the identity keeps the site's account unchanged.

        ``made_for_identity``: the account came with the identity. By default older accounts and
        those of staff stay: their owners have another way in, beyond the service's reach.
        """
        return not made_for_identity or is_privileged(user)

    def erase_user(self, user: AbstractBaseUser) -> None:
        """Erase the site's user, in the transaction that deletes the package's data.

        By default the account is anonymised and disabled, so that related rows stay valid;
        ``erasure = "delete"`` deletes the account. Its files are deleted in both cases. Extend this
        method to erase the site's other data about the person. If the method raises an error, the
        transaction is rolled back and the erasure is retried.
        """
        ways = {"anonymise": anonymisation.anonymise, "delete": anonymisation.delete}
        ways[self.erasure](user)


#: By default nothing is changed, which costs no statement.
NO_UPDATE = IdentityPolicy.update_user


def of_site() -> IdentityPolicy:
    """The policy that the settings name. Raises ``ConfigurationError``."""
    return load(conf.application().policy)


@cache
def load(dotted_path: str) -> IdentityPolicy:
    """The site's policy, created once. Raises ``ConfigurationError`` if loading fails."""
    try:
        chosen = import_string(dotted_path)
    except ImportError as error:
        raise ConfigurationError(
            f"POLICY {dotted_path!r} cannot be imported: {error}.",
        ) from error
    if not (isinstance(chosen, type) and issubclass(chosen, IdentityPolicy)):
        raise ConfigurationError(f"POLICY {dotted_path!r} is not an IdentityPolicy.")
    return chosen()


def writable(fields: object) -> dict[str, Any]:
    """Return ``fields``, which ``new_user_fields`` returned, if the policy may write all of them.

    Raises ``ConfigurationError`` for staff, superuser, active, password and the primary key, and
    if ``fields`` is not a mapping.
    """
    if not isinstance(fields, Mapping):
        returned = type(fields).__name__
        if fields is None:
            returned = "None"
        raise ConfigurationError(
            f"The policy's new_user_fields returned {returned}, not a mapping.",
        )
    refused = {"pk", "id", *never_written()}.intersection(fields)
    if refused:
        names = ", ".join(sorted(refused))
        raise ConfigurationError(f"An IdentityPolicy may not write {names}.")
    return dict(fields)


def never_written() -> set[str]:
    """The fields of the user model outside the policy's reach, with both names of the key."""
    key = get_user_model()._meta.pk
    return {*FIELDS_NEVER_WRITTEN, key.name, key.attname}


def profile_fields() -> dict[str, str]:
    """Member of a profile -> the field for it in a user model that has one."""
    email = get_user_model().get_email_field_name()
    return {"email": email, "first_name": "first_name", "last_name": "last_name"}


def is_yes(answer: object, method: str) -> bool:
    """Whether the policy's ``method`` said yes. Anything empty refuses.

    Raises ``ConfigurationError`` for what is true and not ``True``: a redirect, a text, or the
    coroutine of an async method, which nobody awaits.
    """
    if answer and answer is not True:
        returned = type(answer).__name__
        raise ConfigurationError(
            f"The policy's {method} returned {returned}, not True or False.",
        )
    return bool(answer)


def members_said(claim_type: str, value: Mapping[str, Any]) -> list[Any]:
    """The members of a claim's object that hold the answer, beside ``verified``.

    ``value``, the claim's own noun, and the name of the claim.
    """
    names = {"value", NOUNS.get(claim_type, "value"), claim_type}
    return [value[name] for name in names if name in value]


def contradicts_itself(claim_type: str, value: Mapping[str, Any]) -> bool:
    """Whether two members of a claim's object differ. A plain ``true`` agrees with a text."""
    members = [
        member for member in members_said(claim_type, value) if member is not True
    ]
    return any(member != members[0] for member in members)


def is_privileged(user: AbstractBaseUser) -> bool:
    is_staff = getattr(user, "is_staff", False)
    return bool(is_staff or getattr(user, "is_superuser", False))
