"""Sign-in and linking, Connect codes, sessions, and what the policy is asked."""

from tests.sabotage.sabotage import room

SIGN_IN = room(
    "sign-in",
    tests=(
        "tests/views/bad_input/test_callback.py",
        "tests/views/test_sign_in.py",
        "tests/lifecycle/test_linking.py",
        "tests/views/bad_input/test_people.py",
    ),
    changes="""
any-browser-completes: Only the browser that began a sign-in completes it.
lifecycle/arriving/sign_in.py
-digest(browser_key or "")
+found.browser_digest

callback-counts-twice: Of two callbacks with one state only one exchanges its code.
lifecycle/arriving/sign_in.py
-if not row.filter(consumed_at=None).update(
+if not row.update(

anybody-completes-a-link: A link belongs to the user who began it.
lifecycle/arriving/sign_in.py
-if user.pk != request.user_id:
+if request.user_id is None:

browser-key-behind-a-space: A cookie whose name stands behind a space of Unicode is not ours.
web/browser.py
-cookie.strip(" ")
+cookie.strip()

withdrawal-turned-round: The end of the consent refuses exactly the sign-ins that began before it.
lifecycle/arriving/linking.py
-identity.revoked_at > request.began_at
+identity.revoked_at < request.began_at

sign-in-by-a-code-alone: A link by code gives no power to sign in.
lifecycle/arriving/decisions.py
-Subject.CONNECT: Refuse("linked_by_code"),
+Subject.CONNECT: SIGNS_IN,

address-of-another-account: An e-mail address that another account has is refused.
lifecycle/arriving/accounts.py
-        raise taken
+        return

sign-in-empties-nothing: A sign-in empties what it does not bring.
lifecycle/arriving/arrivals.py
-**withdrawal.NOTHING_BROUGHT,
+**{},

sign-in-replaces-a-session: A sign-in of a known person replaces nobody's session.
lifecycle/arriving/decisions.py
-(known is None or known.user_id != request.user_id)
+known is None
""",
)

CODES = room(
    "codes",
    tests=(
        "tests/lifecycle/test_linking.py",
        "tests/views/connect/test_page.py",
        "tests/views/connect/test_refusals.py",
        "tests/lifecycle/test_arrivals.py",
    ),
    changes="""
code-revives-a-link: A code links only what was never linked here.
lifecycle/arriving/decisions.py
-Subject.REVOKED: Refuse("linked_before"),
+Subject.REVOKED: LINKS_BY_CODE,

code-of-another-user: A code that somebody has entered tells another user nothing.
lifecycle/arriving/connect.py
-is_theirs = first.user_id == user.pk
+is_theirs = first.user_id is not None

spent-code-is-forgotten: A code that may have arrived is never sent again.
lifecycle/arriving/connect.py
-if not is_spent(error):
+if is_spent(error):

unsent-code-frees-all: An unsent code may be entered again, and no other.
lifecycle/arriving/connect.py
-row = ConnectRedemption.objects.filter(pk=redemption.pk)
-        database
+row = ConnectRedemption.objects.all()
+        database
""",
)

SESSIONS = room(
    "sessions",
    tests=(
        "tests/lifecycle/test_sessions.py",
        "tests/test_backends.py",
    ),
    changes="""
epoch-stays: The end of a consent ends every session that rests on it.
lifecycle/ground/sessions.py
-session_epoch=identity.session_epoch + 1
+session_epoch=identity.session_epoch + 0

session-rests-on-a-code: No session rests on a link by code.
models/identity.py
-return is_granted and not self.connect_only and self.is_served
+return is_granted and self.is_served

disabled-account-stays: The session of a disabled account ends.
backends.py
-if not self.user_can_authenticate(user):
+if not user:

identity-stays-on-the-user: A user in a cache does not go on saying that the consent is granted.
lifecycle/ground/sessions.py
-relation.delete_cached_value(user)
+pass

anybody-gets-a-session: A session of the back end belongs to an identity that signs in.
backends.py
-raise ConfigurationError(NAME_ANOTHER)
+return
""",
)

POLICY = room(
    "policy",
    tests=(
        "tests/test_site_code.py",
        "tests/lifecycle/test_questions.py",
        "tests/views/test_strangers.py",
        "tests/views/bad_input/test_people.py",
    ),
    changes="""
errors-take-people-along: No variable of ours leaves with an error of the site's code.
boundary.py
-            del args, kwargs
-        raise stands_for_it
-
-    return wrapped
-
-
-def _awaited
+        raise stands_for_it
+
+    return wrapped
+
+
+def _awaited

async-gates-have-no-door: No thread of an async gate keeps the person in its frames.
boundary.py
-    if iscoroutinefunction(call):
+    if False:

backend-has-no-door: An error of the user model takes nobody along where a session loads its user.
backends.py
-    @boundary
-    def get_user
+    def get_user

level-that-nobody-stated: The policy sees no level, and not an empty one, where none was stated.
lifecycle/arriving/questions.py
-if identity.kyc_said_at is not None or identity.kyc_status:
+if identity is not None:

policy-makes-superusers: No policy makes a superuser of somebody's profile.
policy/__init__.py
-{"is_staff", "is_superuser", "is_active", "password"}
+{"is_staff", "is_active", "password"}

code-links-staff: By default a code does not link an account of staff.
policy/__init__.py
-return not (profile.by_code and is_privileged(user))
+return not (profile.by_code and user.is_anonymous)
""",
)
