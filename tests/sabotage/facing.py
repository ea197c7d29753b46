"""Gates and closed answers, admin and API, checks, instruments, and the sandbox."""

from tests.sabotage.sabotage import room

GATES = room(
    "gates",
    tests=(
        "tests/lifecycle/test_standing.py",
        "tests/gates/test_answers.py",
        "tests/gates/test_scope_and_step_up.py",
    ),
    changes="""
revoked-claim-opens: A revoked claim opens no gate.
lifecycle/ground/values.py
-if ends_at is None or self.row.revoked:
+if ends_at is None:

any-country-opens: A gate with a value opens by that value alone.
lifecycle/ground/values.py
-return self.text in requirement.values
+return self.affirms or self.text in requirement.values

closed-answer-is-cached: No shared cache stores what a closed gate answers.
gates/closed.py
-patch_cache_control(response, private=True)
+patch_cache_control(response, public=True)

return-from-the-future: A return from the future is none.
lifecycle/standing/step_up.py
-0 <= now - at <= minutes * 60
+now - at <= minutes * 60

standing-is-out-of-date: What this process changes is seen at its next question.
lifecycle/standing/standing.py
-if self.user_id != user.pk or self.newest_change is not Changes.newest:
+if self.user_id != user.pk:
""",
)

FACES = room(
    "admin-and-api",
    tests=(
        "tests/admin/test_lists.py",
        "tests/api/test_api.py",
        "tests/gates/test_answers.py",
    ),
    changes="""
operators-search-people: Operators who may not see users find none by name or address.
admin/identities.py
-if not self.may_see_people(request):
+if not request.user.is_staff:

api-without-csrf: A call of the API that changes something needs the CSRF token.
api/views.py
-SessionAuthentication().enforce_csrf(request)
+SessionAuthentication()

gated-json-is-cached: No cache stores what a gated view of the API answers.
api/permissions.py
-getattr(view, "headers", {}).update(PRIVATE)
+getattr(view, "headers", {})
""",
)

CHECKS = room(
    "checks",
    tests=(
        "tests/test_checks.py",
        "tests/test_checks_of_models.py",
    ),
    changes="""
debug-on-a-live-site: A live site with DEBUG does not start.
checks/registration.py
-if is_live and settings.DEBUG:
+if is_live and not settings.DEBUG:

plain-http-elsewhere: Plain http to another machine is named at start-up.
checks/registration.py
-parts.scheme == "http" and not is_loopback(parts.hostname)
+parts.scheme == "http" and is_loopback(parts.hostname)

protected-two-steps-away: A row that protects what goes with ours is named at start-up.
checks/erasures.py
-deleted.append(relation.related_model)
+deleted = [*deleted]

refused-blank-account: A rule that refuses an erased account is named at start-up.
checks/erasures.py
-yield constraint.name
+pass
""",
)

MAP = room(
    "map",
    tests=(
        "tests/instruments/test_own_code.py",
        "tests/instruments/test_gate_map.py",
    ),
    changes="""
own-decorators-are-trusted: A decorator of the site's own above a gate decides, and is named.
instruments/gate_map/layers.py
-if not _is_trusted(layer):
+if layer is None:

own-answers-are-trusted: A dispatch or an initial of the site's own decides, and is named.
instruments/gate_map/reading.py
-before = as_view.own(HANDLERS)
+before = as_view.own(())

what-is-wrapped-is-believed: What a wrapper names, and does not call, is no gate.
instruments/gate_map/layers.py
-return () if "view_class" in attributes else (f"{name}.__wrapped__",)
+return ()

only-openings-are-lines: Each change of what a view asks for is a line.
instruments/gate_map/text.py
-if not line.startswith("@@")][2:]
+if line.endswith("open")]
""",
)

SIGNS = room(
    "signs",
    tests=(
        "tests/commands/test_identity_doctor.py",
        "tests/admin/test_pages.py",
        "tests/views/bad_input/test_callback.py",
    ),
    changes="""
a-few-problems-are-none: A scheduler notices each problem.
management/commands/identity_doctor.py
-if problems:
+if problems > 1:

late-from-tomorrow-on: Re-fetches that are due for over 15 minutes are a sign.
instruments/signs/table.py
-lambda: _identities(refetch_due_at__lte=runs.late()),
+lambda: _identities(refetch_due_at__lte=ago(A_DAY)),

unread-sign-ins-are-well: A sign-in of which something could not be read is a sign at once.
instruments/signs/table.py
-return LinkedIdentity.objects.filter(others, refetch_failures=0)
+return LinkedIdentity.objects.filter(others, refetch_failures=1)

unread-sign-ins-are-silent: A sign-in of which something could not be read is a line of the log.
lifecycle/arriving/identification.py
-log_failure(LogEvent.SIGN_IN_UNREAD, error)
+LogEvent.SIGN_IN_UNREAD

the-overview-hides-warnings: The overview shows exactly what the doctor finds in the rows.
admin/overview.py
-findings=list(of_rows()),
+findings=[each for each in of_rows() if each.level != "warning"],
""",
)

DRILL = room(
    "drill",
    tests=("tests/testing/test_drill.py",),
    changes="""
right-unopened: The drill calls no gate right that was open to nobody.
testing/drill/report.py
-why = self.untried.get(visit["address"])
+why = ""
""",
)

SANDBOX = room(
    "sandbox",
    tests=(
        "tests/sandbox/test_oauth.py",
        "tests/sandbox/test_connect.py",
    ),
    changes="""
plain-challenge: The sandbox refuses a challenge that is not S256.
sandbox/oauth/rules.py
-if request.code_challenge_method != "S256":
+if not request.code_challenge_method:

code-is-used-twice: The sandbox takes each Connect code once.
sandbox/connect.py
-filter(code=code, used_at=None, expires_at__gt=now)
+filter(code=code, expires_at__gt=now)
""",
)
