"""What needs an operator. Each finding says what is wrong, and where to look. Nothing is changed.

``table``: the rows that need an operator · ``rows``: all findings of the database · ``service`` and
``site``: the few others · ``charts``: how many people, and since when
"""

from django.db import Error

from django_identity import conf
from django_identity.instruments import gate_map
from django_identity.instruments.signs import site
from django_identity.instruments.signs.finding import (
    Diagnosis,
    Finding,
    Severity,
    problem,
    warning,
)
from django_identity.instruments.signs.rows import figures, of_rows
from django_identity.instruments.signs.service import of_service

__all__ = ["Finding", "Severity", "diagnose", "figures", "of_rows"]

UNUSED = (
    "Leave it out, unless a template or code of your own asks for it: identity_gates lists what the"
    " map does not see."
)


def diagnose() -> Diagnosis:
    """All findings, causes before their effects. Fatal mistakes in the settings end it."""
    yield from site.check_settings()
    if not conf.is_usable():
        return
    yield from of_service(conf.application())
    yield site.check_broker()
    yield site.check_cache()
    try:
        found = list(site.check_database())
        yield from found
        # A database that cannot be used is the cause of whatever would be found in it.
        if all(each.level is not Severity.PROBLEM for each in found):
            yield from site.check_texts()
            yield from of_rows()
    except Error as error:
        message = f"it does not answer ({type(error).__name__})"
        remedy = (
            "Start it, free connections, correct DATABASES, or run manage.py migrate."
        )
        yield problem("database", message, remedy)
    for scope in gate_map.unused_scopes():
        message = f"no gate of the map asks for {scope} of LATER_SCOPES"
        yield warning("scopes", message, UNUSED)
