"""Every error a site can catch.

::

    IdentityError
    ├── ConfigurationError                 the setting is wrong (also django's ImproperlyConfigured)
    ├── FlowError                          the person's way through the browser went astray
    │   ├── CallbackInvalid                a callback that the service never sends
    │   ├── RequestUnknown                 no such sign-in was started in this browser
    │   ├── RequestExpired                 it was started too long ago
    │   ├── RequestUsed                    it was already completed, or failed half-way
    │   ├── UserChanged                    another user is signed in now than when it started
    │   ├── ConnectCodeMalformed           no Connect code in what was handed in
    │   ├── ConnectSignInNeeded            a Connect code, and nobody is signed in
    │   ├── ConnectCodeInUse               the same code is being redeemed now
    │   ├── ConnectCodeUsed                the same code was handed in here before
    │   ├── TooManyTries                   too many Connect codes in a short time
    │   ├── AccessDenied                   the person said no at the service
    │   └── AuthorizationRefused           the service said no before it asked
    ├── LinkingRefused                     the subject and the site user may not be joined
    │   ├── SubjectTaken                   the subject belongs to another user
    │   ├── UserHoldsAnother               the user already has another subject
    │   ├── SubjectChanged                 a renewal came back as somebody else
    │   ├── EmailTaken                     the address belongs to another account
    │   ├── SignUpRefused                  the site takes no new user
    │   ├── ConnectAnswerRefused           the policy does not take a Connect answer
    │   ├── UserInactive                   the site's account is disabled
    │   └── ConsentWithdrawn               consent was revoked while the flow was on its way
    ├── ServiceError                       the service did not answer as the spec says
    │   ├── ServiceUnavailable             no connection, or a 5xx
    │   │   ├── ServiceTimeout             no answer in time
    │   │   ├── KeysUnavailable            no current key set
    │   │   ├── RefreshPending             a refresh is on its way, or was not answered a moment ago
    │   │   ├── ServiceAway                the last calls failed, so none is made for a while
    │   │   └── BudgetSpent                the calls allowed for now are spent
    │   ├── RateLimited                    429
    │   ├── MalformedAnswer                unreadable, of the wrong types
    │   │   ├── AnswerTooLarge             over the limit
    │   │   ├── UnexpectedRedirect         any 3xx
    │   │   └── SubjectMismatch            the answer is about somebody else
    │   ├── ConnectOutcomeUnknown          a Connect code was sent, and is spent or not
    │   └── ServiceRefusal                 a well-formed no; keeps the service's code
    │       ├── InvalidGrant               the authorization code or refresh token is dead
    │       ├── AccessTokenRejected        401 on a user-data endpoint
    │       ├── AccessForbidden            403 on a user-data endpoint
    │       ├── InvalidConnectCode         the code is unknown, used or expired
    │       ├── ConnectCodeRequired        the service found no code in the request
    │       ├── ClientRejected             401 on a Connect request
    │       ├── VerificationPolicyNotMet   the person lacks a verification; see ``kyc_url``
    │       └── EnvironmentMismatch        test credentials and a live user, or the reverse
    ├── EventRefused                       a webhook delivery that is not taken in
    │   ├── SignatureInvalid               its signature does not fit its body
    │   └── EventUnreadable                signed, and yet not an event
    ├── StorageUnavailable                 the database did not answer
    ├── CredentialRejected                 a credential failed a check; see ``reason``
    ├── NoCredential                       there is none to look at
    ├── DocumentUnreadable                 no key of DOCUMENT_KEYS opens an encrypted document
    ├── ReauthorizationNeeded              the grant is dead or gone; the person has to come again
    └── SealedValueUnreadable              no key of ENCRYPTION_KEYS opens a stored value

Messages hold codes and endpoint names, never what the service or a person sent.
"""

from __future__ import annotations

from django_identity.exceptions.connect import (
    ClientRejected,
    ConnectAnswerRefused,
    ConnectCodeInUse,
    ConnectCodeMalformed,
    ConnectCodeRequired,
    ConnectCodeUsed,
    ConnectOutcomeUnknown,
    ConnectSignInNeeded,
    InvalidConnectCode,
    TooManyTries,
    VerificationPolicyNotMet,
)
from django_identity.exceptions.person import (
    AccessDenied,
    AuthorizationRefused,
    CallbackInvalid,
    ConsentWithdrawn,
    EmailTaken,
    FlowError,
    LinkingRefused,
    RequestExpired,
    RequestUnknown,
    RequestUsed,
    SignUpRefused,
    SubjectChanged,
    SubjectTaken,
    UserChanged,
    UserHoldsAnother,
    UserInactive,
)
from django_identity.exceptions.proof import (
    CredentialRejected,
    DocumentUnreadable,
    NoCredential,
    SealedValueUnreadable,
)
from django_identity.exceptions.root import (
    ConfigurationError,
    IdentityError,
    Recovery,
    Stage,
    shaped_code,
)
from django_identity.exceptions.service import (
    AccessForbidden,
    AccessTokenRejected,
    AnswerTooLarge,
    EnvironmentMismatch,
    InvalidGrant,
    KeysUnavailable,
    MalformedAnswer,
    RateLimited,
    ServiceError,
    ServiceRefusal,
    ServiceTimeout,
    ServiceUnavailable,
    SubjectMismatch,
    UnexpectedRedirect,
)
from django_identity.exceptions.upkeep import (
    BudgetSpent,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceAway,
)
from django_identity.exceptions.webhook import (
    EventRefused,
    EventUnreadable,
    SignatureInvalid,
    StorageUnavailable,
)

__all__ = [
    "AccessDenied",
    "AccessForbidden",
    "AccessTokenRejected",
    "AnswerTooLarge",
    "AuthorizationRefused",
    "BudgetSpent",
    "CallbackInvalid",
    "ClientRejected",
    "ConfigurationError",
    "ConnectAnswerRefused",
    "ConnectCodeInUse",
    "ConnectCodeMalformed",
    "ConnectCodeRequired",
    "ConnectCodeUsed",
    "ConnectOutcomeUnknown",
    "ConnectSignInNeeded",
    "ConsentWithdrawn",
    "CredentialRejected",
    "DocumentUnreadable",
    "EmailTaken",
    "EnvironmentMismatch",
    "EventRefused",
    "EventUnreadable",
    "FlowError",
    "IdentityError",
    "InvalidConnectCode",
    "InvalidGrant",
    "KeysUnavailable",
    "LinkingRefused",
    "MalformedAnswer",
    "NoCredential",
    "RateLimited",
    "ReauthorizationNeeded",
    "Recovery",
    "RefreshPending",
    "RequestExpired",
    "RequestUnknown",
    "RequestUsed",
    "SealedValueUnreadable",
    "ServiceAway",
    "ServiceError",
    "ServiceRefusal",
    "ServiceTimeout",
    "ServiceUnavailable",
    "SignUpRefused",
    "SignatureInvalid",
    "Stage",
    "StorageUnavailable",
    "SubjectChanged",
    "SubjectMismatch",
    "SubjectTaken",
    "TooManyTries",
    "UnexpectedRedirect",
    "UserChanged",
    "UserHoldsAnother",
    "UserInactive",
    "VerificationPolicyNotMet",
    "shaped_code",
]
