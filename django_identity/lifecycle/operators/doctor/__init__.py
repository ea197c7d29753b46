"""Find problems that an operator can fix: ``diagnose``. Each finding has a cause and a remedy.

Each check is a function that yields findings and changes nothing. ``site_checks`` the site's own
parts · ``service_checks`` the service · ``record_checks`` the stored rows
"""

from collections.abc import Iterator

from django.db import Error

from django_identity import conf
from django_identity.lifecycle.operators.doctor import record_checks, service_checks, site_checks
from django_identity.lifecycle.operators.doctor.finding import Finding, Level
from django_identity.lifecycle.operators.doctor.record_checks import figures

__all__ = ["Finding", "Level", "diagnose", "figures"]


def diagnose(*, probe: bool | None = None) -> Iterator[Finding]:
    """Yield all findings, causes before their effects. ``probe``: ask with credentials of nobody.

    None: only where no application is live. Fatal mistakes in the settings end the diagnosis.
    """
    yield from site_checks.check_settings()
    if not conf.is_usable():
        return
    yield from service_checks.check_key_sets()
    yield from site_checks.check_broker()
    yield from site_checks.check_cache()
    yield from service_checks.check_credentials(probe)
    try:
        yield from site_checks.check_database()
        yield from record_checks.check_records()
    except Error as error:
        said = f"it does not answer ({type(error).__name__})"
        remedy = "Start it, correct DATABASES, or run manage.py migrate."
        yield Finding("database", Level.PROBLEM, said, remedy)
