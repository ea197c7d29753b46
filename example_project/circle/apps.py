from __future__ import annotations

from django.apps import AppConfig


class CircleConfig(AppConfig):
    name = "example_project.circle"
    label = "circle"
