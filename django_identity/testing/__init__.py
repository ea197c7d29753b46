"""For the tests of a site: ``pytest_plugins = ["django_identity.testing.plugin"]``.

- ``plugin``: the fixtures; ``docs/testing.md`` lists them
- ``build``: people whose gates are open, with no service at all
- ``sandbox``: the service as a process of its own, and people with accounts there
- ``clock``: moves the time by which claims, grants and sessions run out
"""
