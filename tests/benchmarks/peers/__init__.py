"""This package beside others that do a part of its work: ``python -m tests.benchmarks.peers``.

The command installs the built package and its peers into an environment of their own, measures all
of them in one run and prints one table. ``README.md`` of the benchmarks says how to read it.

Each peer is a site in ``sites/``, set up as the peer's own documentation says. ``worker`` is the
process of one site, ``service`` the process of the service that all of them ask.
"""
