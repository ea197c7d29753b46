"""Gates and closed answers, admin and API, checks, instruments, and the sandbox."""

from tests.sabotage.sabotage import Room, Sabotage

GATES = Room(
    "gates",
    tests=(
        "tests/lifecycle/test_standing.py",
        "tests/gates/test_answers.py",
        "tests/gates/test_scope_and_step_up.py",
    ),
    sabotages=(
        Sabotage(
            "revoked-claim-opens",
            "lifecycle/ground/values.py",
            "if ends_at is None or self.row.revoked:",
            "if ends_at is None:",
            "A revoked claim opens no gate.",
        ),
        Sabotage(
            "any-country-opens",
            "lifecycle/ground/values.py",
            "return self.text in requirement.values",
            "return self.affirms or self.text in requirement.values",
            "A gate with a value opens by that value alone.",
        ),
        Sabotage(
            "closed-answer-is-cached",
            "gates/closed.py",
            "patch_cache_control(response, private=True)",
            "patch_cache_control(response, public=True)",
            "No shared cache stores what a closed gate answers.",
        ),
        Sabotage(
            "return-from-the-future",
            "lifecycle/standing/step_up.py",
            "0 <= now - at <= minutes * 60",
            "now - at <= minutes * 60",
            "A return from the future is none.",
        ),
        Sabotage(
            "standing-is-out-of-date",
            "lifecycle/standing/standing.py",
            "if self.user_id != user.pk or self.newest_change is not Changes.newest:",
            "if self.user_id != user.pk:",
            "What this process changes is seen at its next question.",
        ),
    ),
)

FACES = Room(
    "admin-and-api",
    tests=(
        "tests/admin/test_lists.py",
        "tests/api/test_api.py",
        "tests/gates/test_answers.py",
    ),
    sabotages=(
        Sabotage(
            "operators-search-people",
            "admin/identities.py",
            "if not self.may_see_people(request):",
            "if not request.user.is_staff:",
            "Operators who may not see users find none by name or address.",
        ),
        Sabotage(
            "api-without-csrf",
            "api/views.py",
            "SessionAuthentication().enforce_csrf(request)",
            "SessionAuthentication()",
            "A call of the API that changes something needs the CSRF token.",
        ),
        Sabotage(
            "gated-json-is-cached",
            "api/permissions.py",
            'getattr(view, "headers", {}).update(PRIVATE)',
            'getattr(view, "headers", {})',
            "No cache stores what a gated view of the API answers.",
        ),
    ),
)

CHECKS = Room(
    "checks",
    tests=("tests/test_checks.py", "tests/test_conf.py"),
    sabotages=(
        Sabotage(
            "debug-on-a-live-site",
            "checks/registration.py",
            "if is_live and settings.DEBUG:",
            "if is_live and not settings.DEBUG:",
            "A live site with DEBUG does not start.",
        ),
        Sabotage(
            "plain-http-elsewhere",
            "checks/registration.py",
            'parts.scheme == "http" and not is_loopback(parts.hostname)',
            'parts.scheme == "http" and is_loopback(parts.hostname)',
            "Plain http to another machine is named at start-up.",
        ),
        Sabotage(
            "protected-two-steps-away",
            "checks/erasures.py",
            "deleted.append(relation.related_model)",
            "deleted = [*deleted]",
            "A row that protects what goes with ours is named at start-up.",
        ),
        Sabotage(
            "refused-blank-account",
            "checks/erasures.py",
            "yield constraint.name",
            "pass",
            "A rule that refuses an erased account is named at start-up.",
        ),
    ),
)

MAP = Room(
    "map",
    tests=(
        "tests/instruments/test_own_code.py",
        "tests/instruments/test_map_text.py",
        "tests/instruments/test_gate_map.py",
    ),
    sabotages=(
        Sabotage(
            "own-decorators-are-trusted",
            "instruments/gate_map/layers.py",
            "if not _is_trusted(layer):",
            "if layer is None:",
            "A decorator of the site's own above a gate decides, and is named.",
        ),
        Sabotage(
            "own-answers-are-trusted",
            "instruments/gate_map/reading.py",
            "before = as_view.own(HANDLERS)",
            "before = as_view.own(())",
            "A dispatch or an initial of the site's own decides, and is named.",
        ),
        Sabotage(
            "what-is-wrapped-is-believed",
            "instruments/gate_map/layers.py",
            'return () if "view_class" in attributes else (f"{name}.__wrapped__",)',
            "return ()",
            "What a wrapper names, and does not call, is no gate.",
        ),
        Sabotage(
            "only-openings-are-lines",
            "instruments/gate_map/text.py",
            'if not line.startswith("@@")][2:]',
            'if line.endswith("open")]',
            "Each change of what a view asks for is a line.",
        ),
    ),
)

SIGNS = Room(
    "signs",
    tests=(
        "tests/commands/test_identity_doctor.py",
        "tests/admin/test_pages.py",
        "tests/views/bad_input/test_callback.py",
    ),
    sabotages=(
        Sabotage(
            "a-few-problems-are-none",
            "management/commands/identity_doctor.py",
            "if problems:",
            "if problems > 1:",
            "A scheduler notices each problem.",
        ),
        Sabotage(
            "late-from-tomorrow-on",
            "instruments/signs/table.py",
            "lambda: _identities(refetch_due_at__lte=runs.late()),",
            "lambda: _identities(refetch_due_at__lte=ago(A_DAY)),",
            "Re-fetches that are due for over 15 minutes are a sign.",
        ),
        Sabotage(
            "unread-sign-ins-are-well",
            "instruments/signs/table.py",
            "return LinkedIdentity.objects.filter(others, refetch_failures=0)",
            "return LinkedIdentity.objects.filter(others, refetch_failures=1)",
            "A sign-in of which something could not be read is a sign at once.",
        ),
        Sabotage(
            "unread-sign-ins-are-silent",
            "lifecycle/arriving/identification.py",
            "log_failure(LogEvent.SIGN_IN_UNREAD, error)",
            "LogEvent.SIGN_IN_UNREAD",
            "A sign-in of which something could not be read is a line of the log.",
        ),
        Sabotage(
            "the-overview-hides-warnings",
            "admin/overview.py",
            "findings=list(of_rows()),",
            'findings=[each for each in of_rows() if each.level != "warning"],',
            "The overview shows exactly what the doctor finds in the rows.",
        ),
    ),
)

DRILL = Room(
    "drill",
    tests=("tests/instruments/test_drill.py",),
    sabotages=(
        Sabotage(
            "right-unopened",
            "instruments/drill/report.py",
            'why = self.untried.get(visit["address"])',
            'why = ""',
            "The drill calls no gate right that was open to nobody.",
        ),
    ),
)

SANDBOX = Room(
    "sandbox",
    tests=(
        "tests/sandbox/test_authorization.py",
        "tests/sandbox/test_connect.py",
    ),
    sabotages=(
        Sabotage(
            "plain-challenge",
            "sandbox/oauth/rules.py",
            'if request.code_challenge_method != "S256":',
            "if not request.code_challenge_method:",
            "The sandbox refuses a challenge that is not S256.",
        ),
        Sabotage(
            "code-is-used-twice",
            "sandbox/connect.py",
            "filter(code=code, used_at=None, expires_at__gt=now)",
            "filter(code=code, expires_at__gt=now)",
            "The sandbox takes each Connect code once.",
        ),
    ),
)
