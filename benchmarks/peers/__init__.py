"""This package beside others that do a part of its work: ``python -m benchmarks.peers``.

``sites`` sets each peer up as its own documentation says; ``worker`` is the process of one site,
``service`` the process of the service that all of them ask.
"""
