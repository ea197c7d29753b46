"""For the tests of a site: ``pytest_plugins = ["django_identity.testing.plugin"]``.

- ``plugin``: the fixtures; ``docs/testing.md`` lists them
- ``build``: linked identities with open gates, without a service
- ``sandbox``: the sandbox as a separate process, and accounts there
- ``clock``: moves the clock, to test claims, grants and sessions that expire
"""
