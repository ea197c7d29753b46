"""Linking: choose the site's user for a subject, or refuse, and store the service's data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, OperationalError
from django.db.models import Exists, OuterRef, Q

from django_identity import database, exceptions, policy, signals
from django_identity.conf import Application
from django_identity.lifecycle import erasure
from django_identity.lifecycle.arrival import accounts, link_notice
from django_identity.lifecycle.arrival.service_data import ServiceData, Storing
from django_identity.lifecycle.events import lock_subject, receipts, tallies
from django_identity.models import (
    NEVER,
    Consent,
    FormerLink,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    TallyName,
    digest,
)
from django_identity.models.compiled import CompiledQuery

_OF_SUBJECT = CompiledQuery(
    lambda given: LinkedIdentity.objects.filter(subject_digest=given).select_related("user"),
    LinkedIdentity._meta.get_field("subject_digest"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A request to link: its application, its purpose, the user who started, and when.

    ``complete(completed_by=user)`` records the end. It is called in the transaction of the link,
    and again if a new user is created.
    """

    application: Application
    purpose: Purpose
    user_id: Any
    began_at: datetime
    complete: Callable[..., None]


def link(
    request: LinkRequest, data: ServiceData, *, user: AbstractBaseUser | None
) -> tuple[LinkedIdentity, AbstractBaseUser]:
    """Link the subject to its user and store the service's data, in one transaction.

    ``user`` is the user who is signed in in the person's browser now, or None. If two requests link
    the same new subject at once, a unique constraint stops one of them; it tries again and finds
    the identity. A deadlock with an event is retried in the same way. Raises a ``LinkingRefused``.
    """
    attempt = _Attempt(request, data, user)
    try:
        return attempt.link()
    except (IntegrityError, OperationalError, exceptions.EmailTaken):
        return attempt.link()


@dataclass(frozen=True, slots=True)
class _Attempt:
    request: LinkRequest
    data: ServiceData
    user: AbstractBaseUser | None

    def link(self) -> tuple[LinkedIdentity, AbstractBaseUser]:
        application, profile = self.request.application, self.data.profile
        identity = next(_OF_SUBJECT.instances(self._digest), None)
        abandoned = identity if identity and self._is_abandoned(identity) else None
        identity = None if abandoned else identity
        held: LinkedIdentity | FormerLink | None = identity or self._former_link()
        self._refuse_wrong_person(held)
        owner = held.user if held else self._fit_user()
        created, via_before = owner is None, held.linked_via if held else None
        with database.atomic():
            # Write first: SQLite then waits for the lock. After a read it would fail at once.
            self.request.complete(completed_by=owner)
            lock_subject(self._digest)
            if abandoned is not None:
                by_code = Q(linked_via=LinkedVia.CONNECT, consent=Consent.REVOKED)
                erasure.disconnect(abandoned, only=by_code)
            if owner is None:
                owner = accounts.sign_up(application, profile=profile, kyc=self.data.kyc)
                self.request.complete(completed_by=owner)
            self._ask_site(owner, via=via_before, created=created)
            is_new = identity is None
            if identity is None:
                identity = self._create(owner, created=created)
            elif not (self.data.is_by_code and via_before == LinkedVia.CONNECT):
                # A code may be another person's, so its data is not written to the account.
                accounts.overwrite_fields(application, owner, profile=profile, kyc=self.data.kyc)
            Storing(self.request, self.data, identity).store()
            if is_new or identity.linked_via != via_before:
                link_notice.send_on_commit(application, identity, user=owner, profile=profile)
            elif self.request.purpose == Purpose.RENEW:
                link_notice.send_change_on_commit(application, [owner], change="renewed")
            if not self.data.is_by_code:
                # The last statement: the row of the day is locked by all sign-ins.
                tallies.add(TallyName.SIGNED_IN, application=application)
        return identity, owner

    @property
    def _digest(self) -> str:
        application = self.request.application
        return digest(application.alias, application.environment, self.data.subject)

    def _is_abandoned(self, identity: LinkedIdentity) -> bool:
        """Whether to remove a link by code to another account: its consent was revoked since."""
        return (
            not self.data.is_by_code
            and identity.linked_via == LinkedVia.CONNECT
            and identity.consent == Consent.REVOKED
            and identity.user_id != self.request.user_id
        )

    def _former_link(self) -> FormerLink | None:
        """The account from which the subject was disconnected, if a sign-in may bring it back."""
        if self.request.purpose != Purpose.SIGN_IN:
            return None
        site = policy.load(self.request.application.policy)
        held = LinkedIdentity.objects.under(self.request.application)
        is_free = ~Exists(held.filter(user_id=OuterRef("user_id")))
        former = receipts.former_links(self._digest).filter(is_free).select_related("user")
        return next((link for link in former if site.may_come_back(link.user)), None)

    def _refuse_wrong_person(self, held: LinkedIdentity | FormerLink | None) -> None:
        """Check that the subject may belong to this user, depending on the purpose."""
        owner_id = held.user_id if held else None
        purpose, user = self.request.purpose, self.user
        if purpose == Purpose.SIGN_IN and user is not None and owner_id != user.pk:
            raise exceptions.UserChanged
        if purpose == Purpose.RENEW and owner_id != self.request.user_id:
            raise exceptions.SubjectChanged
        if held is None:
            return
        is_by_code_alone = held.linked_via == LinkedVia.CONNECT
        if purpose == Purpose.SIGN_IN and is_by_code_alone:
            raise exceptions.LinkedByCode
        if purpose == Purpose.LINK and owner_id != self.request.user_id:
            if is_by_code_alone and not self.data.is_by_code:
                raise exceptions.LinkedByCode
            raise exceptions.SubjectTaken
        if not held.user.is_active:
            raise exceptions.UserInactive

    def _fit_user(self) -> AbstractBaseUser | None:
        """Re-read the user, who may have changed, and must not have an identity here yet."""
        if self.user is None:
            return None
        held = LinkedIdentity.objects.under(self.request.application).filter(user_id=self.user.pk)
        users = database.users().annotate(holds_identity=Exists(held))
        known = users.filter(pk=self.user.pk).first()
        if known is None or not known.is_active:
            raise exceptions.UserInactive
        if known.holds_identity:
            raise exceptions.UserHoldsAnother
        return known  # type: ignore[no-any-return]  # the site's user model

    def _ask_site(self, owner: AbstractBaseUser, *, via: str | None, created: bool) -> None:
        """Ask the site's policy whether ``owner`` may sign in, or be linked, in this way.

        ``via``: how the identity was linked before. A full sign-in confirms a link by code, so the
        policy is asked as for a new link. A sign-in to which only a code leads needs both answers.
        """
        site = policy.load(self.request.application.policy)
        profile, is_by_code = self.data.profile, self.data.is_by_code
        if self.request.purpose == Purpose.SIGN_IN:
            needs_link = is_by_code or (not created and via != LinkedVia.OAUTH)
            may_link = not needs_link or site.may_link(owner, replace(profile, by_code=True))
            if not may_link or not site.may_sign_in(owner):
                raise exceptions.SignInNotAllowed
            return
        is_new_link = via is None or (via != LinkedVia.OAUTH and not is_by_code)
        if is_new_link and not site.may_link(owner, replace(profile, by_code=is_by_code)):
            raise exceptions.LinkNotAllowed

    def _create(self, owner: Any, *, created: bool) -> LinkedIdentity:
        """Create an identity of ``owner``. The lock on the user makes erasures wait.

        A subject that was disconnected from the same account gets its former kind of link back.
        """
        known, former = owner, None
        if not created:
            links = receipts.former_links(self._digest).filter(user_id=owner.pk)
            # A lock, because PostgreSQL checks a deferred foreign key only at the commit.
            users = database.all_users().select_for_update().annotate(was_linked=Exists(links))
            known = users.filter(pk=owner.pk).first()
            former = links.first() if known and known.was_linked else None
        if known is None or not known.is_active:
            raise exceptions.UserInactive
        via_code = LinkedVia.SIGN_UP if created else LinkedVia.CONNECT
        via = via_code if self.data.is_by_code else LinkedVia.OAUTH
        account_made = created
        if former is not None:
            via, account_made = LinkedVia(former.linked_via), former.account_made
            former.delete()
        identity = LinkedIdentity.objects.create(
            user_id=owner.pk,
            application=self.request.application.alias,
            environment=self.request.application.environment,
            subject=self.data.subject,
            consent=Consent.REVOKED,
            consent_changed_at=NEVER,
            linked_via=via,
            account_made=account_made,
            # KYC events from before the link are ignored: that data may have been erased.
            kyc_changed_at=self.data.consented_at(self.request.began_at),
        )
        signals.announce(
            signals.identity_linked, LinkedIdentity, identity=identity, user=owner, created=created
        )
        return identity
