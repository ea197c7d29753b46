"""Proxy and certificate authorities, as the environment of a process names them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from django_identity.service import http


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Clients of this block know ``variables``, and no other proxy or authority."""
    forget_clients()
    try:
        with mock.patch.dict(os.environ, variables):
            for name in {*os.environ} - {*variables}:
                if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
                    del os.environ[name]
            yield
    finally:
        forget_clients()


def forget_clients() -> None:
    # To make one only to close it would read all authorities.
    if http._client.cache_info().currsize:
        for keeps in (False, True):
            http._client(os.getpid(), keeps=keeps).close()
        http._client.cache_clear()
