"""What is frozen from the first release: a site that relies on a name here never has to change.

A name may be added to these lists; one that has to be taken away or changed breaks the promise.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.dispatch import Signal
from django.template.loader import get_template
from django.template.loader_tags import BlockNode, ExtendsNode
from django.urls import Resolver404, resolve, reverse

from django_identity import backends, conf, exceptions, gates, signals
from django_identity.background import TaskName
from django_identity.credentials import RejectionReason, verify
from django_identity.exceptions import IdentityError, Recovery
from django_identity.exceptions.table import ERRORS, hint_of
from django_identity.logs import LogEvent
from django_identity.policy import IdentityPolicy
from django_identity.testing import plugin
from django_identity.texts import advice

NAMES = {
    "django_identity.credentials": "KeySet RejectionReason VerifiedCredential verify",
    "django_identity.exceptions": "CredentialRejected IdentityError ServiceError",
    "django_identity.documents": ("Document document_response documents_of"),
    "django_identity.gates": (
        "ClaimRequiredMixin Closed Gate KycLevelRequiredMixin RecentSignInRequiredMixin "
        "ScopeRequiredMixin aclaims_of aclosed_to claim_required claims_of claims_of_all "
        "closed_response closed_to kyc_level_required recent_sign_in_required scope_required"
    ),
    "django_identity.api.permissions": "HasClaim HasKycLevel HasRecentSignIn HasScope",
    "django_identity.policy": "IdentityPolicy",
    "django_identity.allauth": "AllauthPolicy",
    "django_identity.handlers": "on_event",
    "django_identity.service": "ServiceClient",
    "django_identity.conf": "Application application",
    "django_identity.backends": "IdentityBackend",
    "django_identity.flows": (
        "access_token_for begin_sign_in complete_sign_in erase_account receive_event redeem_code "
        "standing_of"
    ),
    "django_identity.schedule": "beat_schedule",
    "django_identity.models": (
        "AuthorizationRequest ErasureReceipt LinkedIdentity StoredClaim TokenGrant UpkeepRun "
        "WebhookEvent"
    ),
    "django_identity.sandbox": "sandbox_application",
    "django_identity.testing": "assert_erased",
    "django_identity.testing.build": "build_identity",
    "django_identity.testing.clock": "Clock moved_clock",
    "django_identity.testing.drill": "drill",
    "django_identity.testing.events": "deliver_event",
    "django_identity.testing.issuer": "Issuer",
    "django_identity.testing.sandbox": "RunningSandbox SandboxPerson running_sandbox",
}


def test_names_stand_where_they_are_promised():
    """Each says what it is. The gates export no other names."""
    for module, names in NAMES.items():
        found = import_module(module)
        for name in names.split():
            assert inspect.getdoc(getattr(found, name)), f"{module}.{name}"
    assert gates.__all__ == sorted(NAMES["django_identity.gates"].split())


def test_verify_is_called_as_it_is_promised():
    """The credential by position, everything that could be mixed up by its name."""
    given = inspect.getfullargspec(verify)
    assert given.args == ["credential"]
    named = "keys issuer audience environment subject now leeway"
    assert " ".join(given.kwonlyargs) == named
    assert given.kwonlydefaults == {"subject": None, "now": None, "leeway": 0}


# Errors


def _tree(kind: type[IdentityError]) -> list[type[IdentityError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in _tree(child))]


def test_errors_have_one_root_and_codes_of_their_own():
    """The tree is drawn, and each code that is raised or recorded has a row in the table."""
    package = "django_identity"
    ours = [
        kind for kind in _tree(IdentityError) if kind.__module__.startswith(package)
    ]
    drawn = re.findall(r"^[ │├└─]+(\w+)", str(exceptions.__doc__), re.MULTILINE)
    assert sorted(drawn) == sorted(kind.__name__ for kind in ours)
    assert len({kind.code for kind in ours}) == len(ours)

    for code, row in ERRORS.items():
        error = IdentityError(code=code)
        assert error.http_status == row.status
        assert error.recovery == row.recovery
        assert advice.words_of(error, None)[1]
        assert hint_of(code)


def test_each_code_in_the_source_is_in_the_table():
    """``code="…"`` of a raise; an unknown one would be a KeyError in front of a person."""
    sources = Path(conf.__file__).parents[1].rglob("*.py")
    texts = [path.read_text() for path in sources if "sandbox" not in path.parts]
    raised = {*re.findall(r"\bcode=\"(\w+)\"", "".join(texts))}
    assert raised - ERRORS.keys() == set()
    assert len(raised) > 20


# The policy


POLICY = {
    "may_sign_up": "profile kyc claims",
    "may_link": "user profile claims",
    "may_sign_in": "user claims",
    "has_other_way_in": "user",
    "notice": "user change context",
    "new_user_fields": "profile kyc",
    "update_user": "user profile kyc claims",
    "account_with_email": "email",
    "may_accept_connect_answer": "answer",
    "claim_value": "claim_type value",
    "erase_user": "user",
    "may_read_documents": "asked_by identity scope",
    "keeps_account": "user made_for_identity",
}


def test_the_policy_answers_as_it_is_promised():
    methods = {name: getattr(IdentityPolicy(), name) for name in POLICY}
    arguments = {
        name: inspect.signature(each).parameters for name, each in methods.items()
    }
    assert {name: " ".join(each) for name, each in arguments.items()} == POLICY


# Addresses, templates, tags


def test_pages_and_api_have_their_addresses():
    """And nothing may stand behind one."""
    pages = "login callback connect connected account download disconnect webhook"
    for name in pages.split():
        assert reverse(f"identity:{name}") == f"/identity/{name}/"
    for name in ("me", "login", "callback", "connect", "disconnect"):
        assert reverse(f"identity_api:{name}") == f"/identity/api/{name}"
    for address in ("/identity/login/other/", "/identity/api/me/other"):
        with pytest.raises(Resolver404):
            resolve(address)


BLOCKS = {
    "account": "heading identity banner actions claims consent summary records",
    "base": "title styles head skip_link header main_class messages environment content footer",
    "connect": "heading error message recovery reference explanation scopes form hint promise",
    "connected": "heading person explanation actions",
    "disconnect": "heading explanation warning form",
    "disconnected": "heading message way_on",
    "error": "emblem heading message recovery reference",
    "gate_closed": "heading message reason way_in other_ways",
    "login": "heading missing explanation scopes form promise other_ways",
    "same_site_hop": "heading message way_on",
    "undone": "heading message way_on",
}


@pytest.mark.parametrize("template", BLOCKS)
def test_templates_have_their_blocks(template):
    """A site overrides a page block by block; all but the base extend it."""
    parsed: Any = get_template(f"django_identity/{template}.html").template  # type: ignore[attr-defined]
    assert {block.name for block in parsed.nodelist.get_nodes_by_type(BlockNode)} >= {
        *BLOCKS[template].split(),
    }
    assert bool(parsed.nodelist.get_nodes_by_type(ExtendsNode)) is (template != "base")


# Names that other programs know

POLICY_OF_ALL = IdentityPolicy()
FROZEN: dict[str, tuple[set[str], str]] = {
    "the app's label, which names the tables": (
        {app.label for app in apps.get_app_configs() if app.name == "django_identity"},
        "django_identity",
    ),
    "the backend's path, which stands in every session": (
        {backends.BACKEND_PATH},
        "django_identity.backends.IdentityBackend",
    ),
    "the defaults of the policy": (
        {f"{POLICY_OF_ALL.set_password_url}", POLICY_OF_ALL.erasure},
        "None anonymise",
    ),
    "error codes; a re-fetch records overtaken without an exception": (
        {code for code in ERRORS if "." not in code},
        """overtaken
identity_error configuration plain_http_refused flow_error callback_invalid request_unknown
request_expired request_used form_expired user_changed session_ended access_denied
authorization_refused connect_code_malformed connect_code_in_use connect_code_used too_many_tries
linking_refused subject_taken user_holds_another linked_by_code link_not_allowed
sign_in_not_allowed subject_changed email_taken sign_up_refused user_fields_refused user_inactive
consent_withdrawn connect_answer_refused service_error service_unavailable service_timeout
keys_unavailable refresh_pending rate_limited malformed_answer unexpected_redirect subject_mismatch
subject_unknown service_refusal invalid_grant access_token_rejected environment_mismatch
invalid_connect_code connect_code_required client_rejected verification_policy_not_met
connect_outcome_unknown credential_rejected document_unreadable documents_not_allowed
sealed_value_unreadable reauthorization_needed signature_invalid event_unreadable body_cut_off
length_required body_too_large names_nobody storage_unavailable erasure_pending no_other_way_in
linked_before approval_pending session_needed unexpected_error
""",
    ),
    "rejection reasons, which a site may store": (
        set(RejectionReason),
        """
limits format.charset format.tilde format.segments format.disclosure encoding header.json header.alg
header.typ header.crit header.key_source header.kid key signature payload.json payload.nested
payload.iss payload.aud payload.environment payload.sub payload.exp payload.expired payload.nbf
payload.iat payload.sd payload.sd_repeat payload.sd_alg disclosure.repeat disclosure.unlisted
disclosure.json disclosure.array_element disclosure.shape disclosure.nested disclosure.name
disclosure.collision
""",
    ),
    "recoveries": (set(Recovery), "retry restart sign_in_to_link verify contact"),
    "commands": (
        {name for name, app in get_commands().items() if app == "django_identity"},
        """identity_doctor identity_drill identity_erase identity_gates identity_refetch
        identity_replay identity_rotate_keys identity_upkeep identity_verify""",
    ),
    "signals": (
        {name for name, each in vars(signals).items() if isinstance(each, Signal)},
        """identity_linked identity_unlinked consent_granted consent_revoked kyc_changed
        claims_changed reauthorization_needed data_erased event_received sessions_ended""",
    ),
    "tasks": (
        {each.removeprefix("django_identity.") for each in TaskName},
        "upkeep refetch_due run_handlers",
    ),
    "log events": (
        {each.removeprefix("identity.") for each in LogEvent},
        """sign_in.completed sign_in.failed sign_in.unread
        connect.redeemed connect.failed refetch.failed claims.unproven
        disconnected link_notice.failed user_update.failed documents.read documents.failed
        event.received event.refused event.failed grant.lost event.handler_failed erasure.done
        erasure.failed disconnect_failed gate.failed grant.unreadable broker.failed
        broker.unknown service.called unexpected""",
    ),
    "fixtures": (
        {name for name in vars(plugin) if name.startswith("identity_")},
        """identity_application identity_clock identity_event identity_issuer identity_of
        identity_person identity_running_sandbox identity_sandbox identity_sign_in
        identity_webhooks""",
    ),
}


@pytest.mark.parametrize("kind", FROZEN)
def test_names_that_are_stored_or_typed_stay(kind):
    found, promised = FROZEN[kind]
    assert found == set(promised.split())
