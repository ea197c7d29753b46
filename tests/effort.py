"""How hard tests look that try many examples: a little by default, long with ``THOROUGH=1``."""

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("THOROUGH") == "1"


def effort(*, few: int, many: int) -> settings:
    """Settings of hypothesis; an example may take as long as the database needs."""
    return settings(
        max_examples=many if THOROUGH else few,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
