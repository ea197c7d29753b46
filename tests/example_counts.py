"""How hard tests look that try many examples: a little by default, long with ``THOROUGH=1``."""

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("THOROUGH") == "1"

Example = TypeVar("Example")


def spread(examples: Iterable[Example], *, every: int) -> list[Example]:
    """Of many like examples one in ``every``, from the first to the last; all of them if thorough.

    ``every`` should share no factor with the number of kinds that alternate in ``examples``.
    """
    all_examples = list(examples)
    return all_examples if THOROUGH else all_examples[::every]


def examples(*, few: int, many: int) -> settings:
    """Settings of hypothesis; an example may take as long as the database needs."""
    slow = [HealthCheck.too_slow]
    most = many if THOROUGH else few
    return settings(max_examples=most, deadline=None, suppress_health_check=slow)
