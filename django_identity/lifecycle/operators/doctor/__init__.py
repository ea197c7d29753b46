"""Find problems that an operator can fix: ``diagnose``. Each finding has a cause and a remedy.

Each check is a function that yields findings and changes nothing. ``site_checks`` the site's own
parts · ``service_checks`` the service · ``webhook_checks`` deliveries · ``record_checks`` the
stored rows
"""

from collections.abc import Callable, Iterator

from django.db import DatabaseError, InterfaceError

from django_identity import conf
from django_identity.lifecycle.operators.doctor import (
    record_checks,
    service_checks,
    site_checks,
    webhook_checks,
)
from django_identity.lifecycle.operators.doctor.findings import Finding, Level
from django_identity.lifecycle.operators.doctor.site_checks import is_ready

__all__ = ["Finding", "Level", "diagnose", "is_ready"]

Check = Callable[[], Iterator[Finding]]

# Causes before their effects.
WITHOUT_DATABASE: tuple[Check, ...] = (
    service_checks.check_key_sets,
    site_checks.check_broker,
    site_checks.check_cache,
)
WITH_DATABASE: tuple[Check, ...] = (
    site_checks.check_database,
    service_checks.check_issuers,
    webhook_checks.check_webhooks,
    record_checks.check_sealed_values,
    record_checks.check_jobs,
    record_checks.check_due_rows,
    record_checks.check_refetches,
    record_checks.check_sign_ins,
    record_checks.check_grants,
    record_checks.check_events,
    record_checks.check_erasures,
    record_checks.check_removed_applications,
)


def diagnose(*, probe: bool | None = None) -> Iterator[Finding]:
    """Yield all findings. ``probe``: ask the service with credentials of nobody.

    None: only where no application is live. Fatal mistakes in the settings end the diagnosis.
    """
    yield from site_checks.check_settings()
    if any(problem.fatal for problem in conf.problems()):
        return
    for check in WITHOUT_DATABASE:
        yield from check()
    yield from service_checks.check_credentials(probe)
    for check in WITH_DATABASE:
        try:
            yield from check()
        except (DatabaseError, InterfaceError) as error:
            said = f"it does not answer ({type(error).__name__})"
            remedy = "Start it, correct DATABASES, or run manage.py migrate."
            yield Finding("database", Level.PROBLEM, said, remedy)
            return
