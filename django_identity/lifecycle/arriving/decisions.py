"""Who may link an identity, and who signs in: one table, and how a case is found in it.

A case that is allowed here may still be refused: by the policy (``questions``), or by ``linking``,
for an account that is disabled, hidden by the site's manager, or waits for its erasure; a consent
that was revoked meanwhile; an e-mail address of another account; fields that the site or the
database refuses. An account that waits for approval is linked, and gets no session.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from django_identity import exceptions
from django_identity.lifecycle.arriving.request import Arrival, LinkRequest
from django_identity.models import Consent, LinkedIdentity, LinkedVia


class Subject(StrEnum):
    """How the subject is linked, and whether it is to the account that the person is in.

    A sign-in is in no account yet: the subject's row decides which.
    """

    NONE = "not linked"
    HOLDS_ANOTHER = "not linked, but the account has another subject"
    CONNECT = "by code"
    OAUTH = "by sign-in"
    REVOKED = "by sign-in, revoked"
    CONNECT_ELSEWHERE = "by code, to another account"
    OAUTH_ELSEWHERE = "by sign-in, to another account"


class Question(StrEnum):
    """A method of the site's policy that is asked."""

    MAY_SIGN_UP = "may_sign_up"
    MAY_LINK = "may_link"
    MAY_SIGN_IN = "may_sign_in"


@dataclass(frozen=True, slots=True)
class Allow:
    """The identity is linked ``via`` then, if the policy says yes to all that it ``asks``."""

    via: LinkedVia
    asks: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """The person is refused, with the ``code`` of a ``LinkingRefused``."""

    code: str


Decision = Allow | Refuse

BY_SIGN_IN = Allow(LinkedVia.OAUTH)
SIGNS_IN = Allow(LinkedVia.OAUTH, asks=(Question.MAY_SIGN_IN,))
LINKS = Allow(LinkedVia.OAUTH, asks=(Question.MAY_LINK,))
LINKS_BY_CODE = Allow(LinkedVia.CONNECT, asks=(Question.MAY_LINK,))
SUBJECT_CHANGED = Refuse("subject_changed")

#: Which cases can be linked at all.
DECISIONS: Mapping[Arrival, Mapping[Subject, Decision]] = {
    Arrival.SIGN_IN: {
        Subject.NONE: Allow(
            LinkedVia.OAUTH,
            asks=(Question.MAY_SIGN_UP, Question.MAY_SIGN_IN),
        ),
        Subject.CONNECT: Refuse("linked_by_code"),
        Subject.OAUTH: SIGNS_IN,
        Subject.REVOKED: SIGNS_IN,
    },
    Arrival.LINK: {
        Subject.NONE: LINKS,
        Subject.HOLDS_ANOTHER: Refuse("user_holds_another"),
        Subject.CONNECT: LINKS,
        Subject.OAUTH: BY_SIGN_IN,
        Subject.REVOKED: BY_SIGN_IN,
        Subject.CONNECT_ELSEWHERE: Refuse("linked_by_code"),
        Subject.OAUTH_ELSEWHERE: Refuse("subject_taken"),
    },
    Arrival.RENEW: {
        Subject.NONE: SUBJECT_CHANGED,
        Subject.HOLDS_ANOTHER: SUBJECT_CHANGED,
        Subject.CONNECT: LINKS,
        Subject.OAUTH: BY_SIGN_IN,
        Subject.REVOKED: BY_SIGN_IN,
        Subject.CONNECT_ELSEWHERE: SUBJECT_CHANGED,
        Subject.OAUTH_ELSEWHERE: SUBJECT_CHANGED,
    },
    # A code links only what was never linked here: it may be another person's, so it restores no
    # power to sign in. If it took over a revoked link instead, the end of its consent would delete
    # that link, with which the owner comes back, and orphan an account that the link had made.
    Arrival.CODE: {
        Subject.NONE: LINKS_BY_CODE,
        Subject.HOLDS_ANOTHER: Refuse("user_holds_another"),
        Subject.CONNECT: Allow(LinkedVia.CONNECT),
        Subject.OAUTH: BY_SIGN_IN,
        Subject.REVOKED: Refuse("linked_before"),
        Subject.CONNECT_ELSEWHERE: Refuse("subject_taken"),
        Subject.OAUTH_ELSEWHERE: Refuse("subject_taken"),
    },
}


def decide(request: LinkRequest, known: LinkedIdentity | None) -> Allow:
    """Look the case up in ``DECISIONS``. ``known``: the subject's row, locked. Raises a refusal."""
    is_in_account = request.arrival is Arrival.SIGN_IN and request.user_id is not None
    if is_in_account and (known is None or known.user_id != request.user_id):
        # Somebody else signed in here meanwhile, or the person in another tab.
        raise exceptions.FlowError(code="user_changed")

    of_arrival = DECISIONS[request.arrival]
    decision = of_arrival[_subject(request, known)]
    if isinstance(decision, Refuse):
        raise exceptions.LinkingRefused(code=decision.code)
    return decision


def _subject(request: LinkRequest, known: LinkedIdentity | None) -> Subject:
    is_sign_in = request.arrival is Arrival.SIGN_IN
    if known is None and is_sign_in:
        return Subject.NONE
    if known is None:
        return _without_row(request)

    is_by_code = known.linked_via == LinkedVia.CONNECT
    if not is_sign_in and known.user_id != request.user_id:
        if is_by_code:
            return Subject.CONNECT_ELSEWHERE
        return Subject.OAUTH_ELSEWHERE
    if is_by_code:
        return Subject.CONNECT
    if known.consent == Consent.GRANTED:
        return Subject.OAUTH
    return Subject.REVOKED


def _without_row(request: LinkRequest) -> Subject:
    if LinkedIdentity.objects.of_user(request.user_id) is not None:
        return Subject.HOLDS_ANOTHER
    return Subject.NONE
