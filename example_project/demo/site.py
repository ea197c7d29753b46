"""The site's process: migrate, then serve. ``python -m example_project.demo.site PORT``."""

from __future__ import annotations

import sys

import django
from django.core.management import call_command

if __name__ == "__main__":
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False)
