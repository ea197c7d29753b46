"""The client and the person whom every site and the service know."""

from __future__ import annotations

SUBJECT = "subject-1"
CLIENT_ID = "client-1"
CLIENT_SECRET = "a-client-secret-for-benchmarks-alone"
