"""``VerifiedCredential``: immutable, and discreet."""

import json
import pickle

import pytest

from django_identity.credentials import VerifiedCredential
from tests.credentials.issuer import SUBJECT, check, credential, disclose, listing

NESTED = {"object": {"list": [1, {"a": True}], "text": "x"}, "list": [[], {}]}


@pytest.fixture
def verified() -> VerifiedCredential:
    return check(listing(*(disclose(name, value) for name, value in NESTED.items())))


@pytest.mark.parametrize(
    "name", ["subject", "environment", "issued_at", "expires_at", "kid", "claims", "exp", "other"]
)
def test_fields_cannot_be_set(verified, name):
    """No attribute can be set, changed or deleted."""
    with pytest.raises((AttributeError, TypeError)):
        setattr(verified, name, "other")
    with pytest.raises((AttributeError, TypeError)):
        delattr(verified, name)


@pytest.mark.parametrize(
    "change",
    [
        lambda claims: claims.update(a=1),
        lambda claims: claims.__setitem__("object", 1),
        lambda claims: claims.pop("object"),
        lambda claims: claims["object"].__setitem__("text", "y"),
        lambda claims: claims["object"].clear(),
        lambda claims: claims["object"]["list"].append(1),
        lambda claims: claims["object"]["list"].__setitem__(0, 2),
        lambda claims: claims["object"]["list"][1].__setitem__("a", False),
        lambda claims: claims["list"][1].setdefault("a", 1),
    ],
    ids=range(9),
)
def test_claims_cannot_be_changed(verified, change):
    """Row 43: the claims are immutable at every depth."""
    with pytest.raises((AttributeError, TypeError)):
        change(verified.claims)
    assert verified.claims_as_json() == NESTED


def test_claims_as_json(verified):
    """Plain JSON comes fresh each time; the credential itself goes into no cache and no task."""
    with pytest.raises(TypeError):
        pickle.dumps(verified)
    plain = verified.claims_as_json()
    assert json.loads(json.dumps(plain)) == NESTED
    plain["object"]["list"].append(2)
    assert verified.claims_as_json() == NESTED


def test_repr_names_nobody():
    """repr shows the names of the claims, neither their values nor the subject."""
    shown = repr(check(credential()))
    assert SUBJECT not in shown
    assert "NG" not in shown
    assert "vendor" not in shown
    assert "True" not in shown
    assert "country_resident" in shown
    assert "key-1" in shown
