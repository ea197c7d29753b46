"""For the tests of a site: ``pytest_plugins = ["django_identity.testing.plugin"]``.

- ``plugin``: the fixtures; ``docs/testing.md`` lists them
- ``build``: linked identities with open gates, without a service
- ``issuer``: real credentials, verified as after a sign-in, without a service
- ``events``: webhook events, signed and delivered
- ``browser``: a whole sign-in with Django's test client
- ``sandbox``: the sandbox as a separate process, and accounts there
- ``clock``: moves the clock, to test claims, grants and sessions that expire
- ``assert_erased``: whether an erasure left anything in any table
- ``drill``: the promises, tried at the site itself (``identity_drill``)
"""

from django_identity.testing.erased import assert_erased

__all__ = ["assert_erased"]
