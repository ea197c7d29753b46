"""The one error of what a caller sent and the sandbox cannot use."""


class Invalid(ValueError):
    """What was sent cannot be used, and changed nothing. The message names the member and why."""
