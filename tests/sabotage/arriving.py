"""Sign-in and linking, Connect codes, sessions, and what the policy is asked."""

from tests.sabotage.sabotage import Room, Sabotage

SIGN_IN = Room(
    "sign-in",
    tests=(
        "tests/views/bad_input/test_callback.py",
        "tests/views/test_sign_in.py",
        "tests/lifecycle/test_linking.py",
        "tests/views/bad_input/test_people.py",
    ),
    sabotages=(
        Sabotage(
            "any-browser-completes",
            "lifecycle/arriving/sign_in.py",
            'digest(browser_key or "")',
            "found.browser_digest",
            "Only the browser that began a sign-in completes it.",
        ),
        Sabotage(
            "callback-counts-twice",
            "lifecycle/arriving/sign_in.py",
            "if not row.filter(consumed_at=None).update(",
            "if not row.update(",
            "Of two callbacks with one state only one exchanges its code.",
        ),
        Sabotage(
            "anybody-completes-a-link",
            "lifecycle/arriving/sign_in.py",
            "if user.pk != request.user_id:",
            "if request.user_id is None:",
            "A link belongs to the user who began it.",
        ),
        Sabotage(
            "browser-key-behind-a-space",
            "web/browser.py",
            'cookie.strip(" ")',
            "cookie.strip()",
            "A cookie whose name stands behind a space of Unicode is not ours.",
        ),
        Sabotage(
            "withdrawal-turned-round",
            "lifecycle/arriving/linking.py",
            "identity.revoked_at > request.began_at",
            "identity.revoked_at < request.began_at",
            "The end of the consent refuses the sign-ins that began before it, and no later one.",
        ),
        Sabotage(
            "sign-in-by-a-code-alone",
            "lifecycle/arriving/decisions.py",
            'Subject.CONNECT: Refuse("linked_by_code"),',
            "Subject.CONNECT: SIGNS_IN,",
            "A link by code gives no power to sign in.",
        ),
        Sabotage(
            "address-of-another-account",
            "lifecycle/arriving/accounts.py",
            "            raise taken\n",
            "    return\n",
            "An e-mail address that another account has is refused.",
        ),
        Sabotage(
            "sign-in-empties-nothing",
            "lifecycle/arriving/arrivals.py",
            "**withdrawal.NOTHING_BROUGHT,",
            "**{},",
            "A sign-in empties what it does not bring.",
        ),
    ),
)

CODES = Room(
    "codes",
    tests=(
        "tests/lifecycle/test_linking.py",
        "tests/views/connect/test_page.py",
        "tests/views/connect/test_refusals.py",
        "tests/lifecycle/test_arrivals.py",
    ),
    sabotages=(
        Sabotage(
            "code-revives-a-link",
            "lifecycle/arriving/decisions.py",
            'Subject.REVOKED: Refuse("linked_before"),',
            "Subject.REVOKED: LINKS_BY_CODE,",
            "A code links only what was never linked here.",
        ),
        Sabotage(
            "code-of-another-user",
            "lifecycle/arriving/connect.py",
            "is_theirs = first.user_id == user.pk",
            "is_theirs = first.user_id is not None",
            "A code that somebody has entered tells another user nothing.",
        ),
        Sabotage(
            "spent-code-is-forgotten",
            "lifecycle/arriving/connect.py",
            "if not is_spent(error):",
            "if is_spent(error):",
            "A code that may have arrived is never sent again.",
        ),
    ),
)

SESSIONS = Room(
    "sessions",
    tests=("tests/lifecycle/test_sessions.py", "tests/test_backends.py"),
    sabotages=(
        Sabotage(
            "epoch-stays",
            "lifecycle/ground/sessions.py",
            "session_epoch=identity.session_epoch + 1",
            "session_epoch=identity.session_epoch + 0",
            "The end of a consent ends every session that rests on it.",
        ),
        Sabotage(
            "session-rests-on-a-code",
            "models/identity.py",
            "return is_granted and not self.connect_only and self.is_served",
            "return is_granted and self.is_served",
            "No session rests on a link by code.",
        ),
        Sabotage(
            "disabled-account-stays",
            "backends.py",
            "if not self.user_can_authenticate(user):",
            "if not user:",
            "The session of a disabled account ends.",
        ),
        Sabotage(
            "identity-stays-on-the-user",
            "lifecycle/ground/sessions.py",
            "relation.delete_cached_value(user)",
            "pass",
            "A user in a cache does not go on saying that the consent is granted.",
        ),
        Sabotage(
            "anybody-gets-a-session",
            "backends.py",
            "raise ConfigurationError(NAME_ANOTHER)",
            "return",
            "A session of the back end belongs to an identity that signs in.",
        ),
    ),
)

#: The end of the sync half of the boundary, whose async half has the same lines.
SYNC_END = """        raise stands_for_it

    return wrapped


def _awaited"""

POLICY = Room(
    "policy",
    tests=(
        "tests/test_site_code.py",
        "tests/lifecycle/test_questions.py",
        "tests/views/test_strangers.py",
        "tests/views/bad_input/test_people.py",
    ),
    sabotages=(
        Sabotage(
            "errors-take-people-along",
            "boundary.py",
            "            del args, kwargs\n" + SYNC_END,
            SYNC_END,
            "No variable of ours leaves with an error of the site's code.",
        ),
        Sabotage(
            "async-gates-have-no-door",
            "boundary.py",
            "    if iscoroutinefunction(call):\n",
            "    if False:\n",
            "No thread of an async gate keeps the person in its frames.",
        ),
        Sabotage(
            "backend-has-no-door",
            "backends.py",
            "    @boundary\n    def get_user",
            "    def get_user",
            "An error of the user model takes nobody along where a session loads its user.",
        ),
        Sabotage(
            "level-that-nobody-stated",
            "lifecycle/arriving/questions.py",
            "if identity.kyc_said_at is not None or identity.kyc_status:",
            "if identity is not None:",
            "The policy sees no level, and not an empty one, where none was stated.",
        ),
        Sabotage(
            "policy-makes-superusers",
            "policy.py",
            '{"is_staff", "is_superuser", "is_active", "password"}',
            '{"is_staff", "is_active", "password"}',
            "No policy makes a superuser of somebody's profile.",
        ),
        Sabotage(
            "code-links-staff",
            "policy.py",
            "return not (profile.by_code and is_privileged(user))",
            "return not (profile.by_code and user.is_anonymous)",
            "By default a code does not link an account of staff.",
        ),
    ),
)
