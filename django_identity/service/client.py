"""``ServiceClient``: one method for each endpoint of the spec.

Its callers:

- a sign-in: ``identification`` (code, profile, level, claims); a code: ``connect``
- a re-fetch: ``refetch`` (level, claims); documents: ``documents.reading``. Both by
  ``tokens.Reader``, which refreshes the token if necessary
- the verification: ``key_sets`` (the published keys)
- the doctor: ``instruments.signs.service`` (the keys, a refresh and a profile that must be refused)
- a site's own code alone: ``verify_claims``, ``rotate_secret``, ``create_test_user``
"""

import base64
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from django.views.decorators.debug import sensitive_variables

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.secrets import Secret
from django_identity.service import answers, refusals
from django_identity.service.connect import ConnectAnswer
from django_identity.service.http import Answer, Call, exchange
from django_identity.service.members import SUBJECT_MEMBERS, Members
from django_identity.strict_json import JSONObject

LARGEST_KEY_SET = 64 * 1024
KEY_SET_SECONDS = 5.0
USER_PATH = "/users/{subject}/{endpoint}"
# A profile names its person by another member than the other answers.
PROFILE_SUBJECT_MEMBERS = ("id",)
# The path segment for the access token's user. The spec does not show it.
TOKENS_USER = "me"
# A service that does not know this path segment answers with one of these.
NO_SUCH_USER = (400, 403, 404, 422)


P = ParamSpec("P")
T = TypeVar("T")


def without_frames(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate ``call``: its ``IdentityError`` has no frame of the function, and none below it.

    An error tracker prints the variables of each frame, and some hold a revealed secret or an
    answer about a person. Of any other error Django's own report leaves out the variables.
    """
    hidden = sensitive_variables()(call)

    @wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return hidden(*args, **kwargs)
        except exceptions.IdentityError as error:
            del args, kwargs
            error.__context__ = None
            raise error.with_traceback(None) from None

    return wrapped


class ServiceClient:
    """A stateless client for one application.

    A read is sent once more after a broken connection. Every other call is sent once.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    @without_frames
    def exchange_code(
        self,
        *,
        code: str,
        code_verifier: Secret,
        redirect_uri: str,
    ) -> answers.TokenAnswer:
        """Exchange an authorization code for tokens. Sent once (RFC 6749 §4.1.3, RFC 7636 §4.5)."""
        verifier = code_verifier.reveal()
        form = {"code": code, "code_verifier": verifier, "redirect_uri": redirect_uri}
        return answers.TokenAnswer.parse(self._token("authorization_code", **form))

    @without_frames
    def refresh(self, refresh_token: Secret) -> answers.TokenAnswer:
        """Exchange a refresh token for new tokens. Sent once (RFC 6749 §6)."""
        body = self._token("refresh_token", refresh_token=refresh_token.reveal())
        return answers.TokenAnswer.parse_refreshed(body)

    @without_frames
    def profile(self, subject: str | None, *, access_token: Secret) -> answers.Profile:
        """The profile of ``subject``, or of the access token's user."""
        body = self._read("profile", subject, access_token)
        return answers.Profile.parse(body, environment=self._application.environment)

    @without_frames
    def kyc(self, subject: str | None, *, access_token: Secret) -> answers.KycStatus:
        """The KYC status of ``subject``, or of the access token's user."""
        return answers.KycStatus.parse(self._read("kyc", subject, access_token))

    @without_frames
    def claims(
        self,
        subject: str | None,
        *,
        access_token: Secret,
    ) -> answers.ClaimsAnswer:
        """The claims of ``subject``, or of the access token's user."""
        return answers.ClaimsAnswer.parse(self._read("claims", subject, access_token))

    @without_frames
    def verify_claims(self, credential: str) -> bool:
        """Ask the service whether it holds ``credential`` to be valid for this application.

        The site's own ``credentials.verify`` opens gates. This is a second opinion, which also
        knows of revocations. The spec shows only the path: authentication and answer are those of
        the sandbox.
        """
        body = self._fetch(
            "verify_claims",
            "/claims/verify",
            json={"credential": credential},
        )
        valid = body.get("valid")
        if not isinstance(valid, bool):
            raise exceptions.MalformedAnswer(
                "no boolean valid",
                endpoint="verify_claims",
            )
        return valid

    @without_frames
    def documents(
        self,
        subject: str,
        *,
        scope: str,
        access_token: Secret,
    ) -> tuple[answers.Document, ...]:
        """The documents of ``subject``, from the path that the site set for ``scope``.

        With ``documents:read`` they have content, encrypted to a key of the application. Raises
        ``ConfigurationError`` if ``DOCUMENT_PATHS`` has no path for the scope.
        """
        path = self._application.document_paths.get(scope)
        if path is None:
            raise exceptions.ConfigurationError(
                f"DOCUMENT_PATHS has no path for {scope}.",
            )
        largest = answers.LARGEST_DOCUMENTS
        body = self._read(
            "documents",
            subject,
            access_token,
            path=path,
            largest=largest,
        )
        return answers.Document.parse_all(body)

    @without_frames
    def redeem_connect_code(
        self,
        code: str,
        scopes: Sequence[str],
        callback_url: str | None = None,
    ) -> ConnectAnswer:
        """Redeem a Connect code for ``scopes``. The request is sent exactly once.

        Raises ``InvalidConnectCode``, ``VerificationPolicyNotMet``, ``EnvironmentMismatch`` or
        another ``ServiceRefusal``; ``RateLimited``; ``MalformedAnswer``, with the ``request_id``,
        for a success response with mistyped members; ``ServiceError`` if the result is unknown.
        After these errors the code is spent. It is unspent only after a ``ServiceError`` with a
        false ``may_have_arrived``.
        """
        request: dict[str, Any] = {"connect_code": code, "scopes": list(scopes)}
        if callback_url is not None:
            request["callback_url"] = callback_url
        try:
            body = self._fetch(
                "connect",
                "/connect/request",
                json=request,
                sent_once=True,
            )
        except (exceptions.MalformedAnswer, exceptions.ServiceUnavailable) as error:
            if not error.may_have_arrived:
                raise
            # A second try would spend the code that the service may have taken.
            raise exceptions.ServiceError(
                error.code,
                endpoint="connect",
                code="connect_outcome_unknown",
            ) from None

        try:
            return ConnectAnswer.parse(body, asked=scopes)
        except exceptions.MalformedAnswer as unusable:
            unusable.request_id = exceptions.shaped_code(body.get("request_id"))
            raise

    def key_set(self) -> Answer:
        """The published key set, as it was sent."""
        url = f"{self._application.api_origin}/.well-known/jwks.json"
        call = Call("jwks", url, seconds=KEY_SET_SECONDS, largest=LARGEST_KEY_SET)
        answer = exchange(self._application, call)
        if answer.status != 200:
            raise exceptions.ServiceUnavailable.of_status(
                answer.status,
                endpoint="jwks",
            )
        return answer

    @without_frames
    def rotate_secret(
        self,
        app_id: str,
        *,
        mode: str,
        portal_token: Secret,
    ) -> answers.RotatedSecret:
        """Ask for a new client secret for ``mode``. The current one is void at once. Sent once.

        ``portal_token``: the developer portal's session token. The secret may have changed after a
        ``ServiceError`` that has a true ``may_have_arrived`` and is not a ``ServiceRefusal``.
        """
        path = f"/developer/apps/{quote(app_id, safe='')}/rotate-secret"
        body = self._fetch(
            "rotate_secret",
            path,
            portal_token,
            json={"mode": mode},
            sent_once=True,
        )
        return answers.RotatedSecret.parse(body)

    @without_frames
    def create_test_user(
        self,
        app_id: str,
        *,
        portal_token: Secret,
    ) -> answers.NewTestUser:
        """Ask for a new sandbox user. The answer has the password. Sent once."""
        path = "/developer/test-users"
        body = self._fetch(
            "test_users",
            path,
            portal_token,
            json={"appId": app_id},
            sent_once=True,
        )
        return answers.NewTestUser.parse(body)

    def _basic_credentials(self) -> str:
        """Basic credentials in UTF-8 (RFC 7617 §2.1); E004 refuses a client id with a colon."""
        pair = (
            f"{self._application.client_id}:{self._application.client_secret.reveal()}"
        )
        return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"

    def _send(self, call: Call) -> JSONObject:
        """Send ``call``. The JSON object of a success response; others raise an error."""
        answer = exchange(self._application, call)
        return refusals.members_of(self._application, call.endpoint, answer)

    def _fetch(
        self,
        endpoint: str,
        path: str,
        token: Secret | None = None,
        **more: Any,
    ) -> JSONObject:
        """The ``data`` of the success envelope, from ``path`` below the base address.

        The request has ``token``, else the client's credentials. ``more``: further members of the
        ``Call``.
        """
        proof = self._basic_credentials()
        if token is not None:
            proof = f"Bearer {token.reveal()}"
        url = f"{self._application.base_url}{path}"
        envelope = self._send(Call(endpoint, url, {"Authorization": proof}, **more))

        data = envelope.get("data")
        if envelope.get("success") is not True or not isinstance(data, dict):
            raise exceptions.MalformedAnswer(
                "not the success envelope",
                endpoint=endpoint,
            )
        return data

    def _token(self, grant_type: str, **form: str) -> JSONObject:
        """The members of a token answer, as RFC 6749 has them or in the success envelope."""
        form |= {
            "grant_type": grant_type,
            "client_id": self._application.client_id,
            "client_secret": self._application.client_secret.reveal(),
        }
        url = f"{self._application.auth_url}/oauth2/token"
        members = self._send(Call("token", url, form=form, sent_once=True))
        data = members.get("data")
        if members.get("success") is True and isinstance(data, dict):
            return data
        return members

    def _read(
        self,
        endpoint: str,
        subject: str | None,
        token: Secret,
        path: str = USER_PATH,
        **more: Any,
    ) -> JSONObject:
        """The ``data`` of a user endpoint, unless it names another subject than the requested one.

        ``subject``: None for the access token's user. Raises ``ServiceRefusal`` with the code
        ``subject_unknown`` if the service refuses such a request.
        """
        person = TOKENS_USER
        if subject is not None:
            person = quote(subject, safe="")
        path = path.format(subject=person, endpoint=endpoint)
        try:
            body = self._fetch(endpoint, path, token, **more)
        except exceptions.EnvironmentMismatch:
            raise
        except exceptions.ServiceRefusal as refused:
            if subject is None and refused.status in NO_SUCH_USER:
                refused.code = "subject_unknown"
            raise

        # Another person's data must never open this person's gates.
        names: tuple[str, ...] = SUBJECT_MEMBERS
        if endpoint == "profile":
            names = PROFILE_SUBJECT_MEMBERS
        named = Members(body, endpoint).named_subject(names)
        if subject is not None and named not in (None, subject):
            raise exceptions.SubjectMismatch("about another subject", endpoint=endpoint)
        return body
