"""Addresses of the console."""

from django.urls import path

from django_identity.sandbox.console import actions, pages

urlpatterns = [
    path("", pages.home, name="home"),
    path("console/stream", pages.stream, name="console_stream"),
    path("console/credential", pages.credential, name="console_credential"),
    path("console/switches", pages.switches, name="console_switches"),
    path("console/person", actions.to_person, name="console_person"),
    path("console/keys", actions.keys, name="console_keys"),
    path("console/clock", actions.move_clock, name="console_clock"),
    path("console/faults", actions.fail_next, name="console_faults"),
    path("console/switches/save", actions.change_switches, name="console_save_switches"),
]
