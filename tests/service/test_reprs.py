"""What goes over the wire and holds a secret or a person prints neither."""

import pytest

from django_identity.secrets import Secret
from django_identity.service import answers
from django_identity.service.http import Answer, Call

SECRET = "what-nobody-may-see"


@pytest.mark.parametrize(
    "value",
    [
        answers.TokenAnswer.parse({"access_token": SECRET, "expires_in": 60}),
        answers.TokenAnswer.parse({"access_token": "a", "refresh_token": SECRET, "expires_in": 60}),
        answers.TokenAnswer.parse({"access_token": "a", "expires_in": 60, "sub": SECRET}),
        answers.ClaimsAnswer.parse({"user_id": SECRET, "claims": [], "credential": None}),
        answers.ClaimsAnswer.parse({"user_id": "a", "claims": [], "credential": SECRET}),
        answers.Profile.parse({"id": SECRET}),
        answers.Profile.parse({"id": "a", "email": SECRET}),
        Call("claims", f"https://x.y/users/{SECRET}"),
        Call("claims", "https://x.y", {"Authorization": SECRET}),
        Call("token", "https://x.y", form={"refresh_token": SECRET}),
        Call("connect", "https://x.y", json={"connect_code": SECRET}),
        Answer(200, {"location": SECRET}, b""),
        Answer(200, {}, SECRET.encode()),
        answers.RotatedSecret("test", "a", Secret(SECRET)),
        answers.NewTestUser("a", SECRET, Secret("b")),
        answers.NewTestUser("a", "b", Secret(SECRET)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_prints_no_secret(value: object) -> None:
    """Not in a log, a traceback or a debugger that prints what it holds."""
    assert SECRET not in f"{value!r} {value}"
