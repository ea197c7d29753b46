"""Connects the receivers."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import import_string


class TokensConfig(AppConfig):
    name = "tests.sites.tokens"
    label = "tokens"

    def ready(self) -> None:
        import_string("tests.sites.tokens.receivers.end_token")
