"""Find problems that an operator can fix: ``diagnose``. Each finding has a cause and a remedy.

Each check is a function that yields findings and changes nothing. ``site_checks`` the site's own
parts · ``service_checks`` the service · ``upkeep_checks`` what is late, and why · ``grant_checks``
the stored tokens · ``record_checks`` the other rows · ``probe_checks`` what only a try tells
"""

from django.db import Error

from django_identity import conf
from django_identity.lifecycle.operators.doctor import (
    grant_checks,
    probe_checks,
    record_checks,
    service_checks,
    site_checks,
    upkeep_checks,
)
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Finding,
    Level,
    problem,
)
from django_identity.lifecycle.operators.doctor.record_checks import figures

__all__ = ["Finding", "Level", "diagnose", "figures"]


def diagnose(*, probe: bool | None = None) -> Diagnosis:
    """Yield all findings, causes before their effects. ``probe``: ask with credentials of nobody.

    None: unless the site is live. Fatal mistakes in the settings end the diagnosis.
    """
    yield from site_checks.check_settings()
    if not conf.is_usable():
        return
    yield from service_checks.check_key_sets()
    yield from site_checks.check_broker()
    yield from site_checks.check_cache()
    yield from service_checks.check_credentials(probe)
    try:
        found = list(site_checks.check_database())
        yield from found
        # A database that cannot be used is the cause of whatever would be found in it.
        if not found:
            yield from site_checks.check_texts()
            yield from _of_the_rows(probe)
    except Error as error:
        yield problem(
            "database",
            f"it does not answer ({type(error).__name__})",
            "Start it, correct DATABASES, or run manage.py migrate.",
        )


def _of_the_rows(probe: bool | None) -> Diagnosis:
    yield from grant_checks.check_keys()
    yield from probe_checks.check_credential(probe)
    if probe:
        yield from probe_checks.check_webhook_address()
    yield from upkeep_checks.check_upkeep()
    yield from grant_checks.check_grants()
    yield from record_checks.check_records()
