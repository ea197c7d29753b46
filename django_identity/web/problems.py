"""The one JSON body of every refusal: a problem of RFC 9457, for gates, permissions and the API.

Status and code are those of ``exceptions.table``, or of a closed gate (``gates.closed``). What the
API answers: ``api.problems``.
"""

from http.client import responses
from typing import Any

from django_identity.exceptions import Recovery

MEDIA_TYPE = "application/problem+json"
# RFC 9110 wants a challenge in each 401. Browsers ignore a scheme that they do not know.
CHALLENGE = "Session"


def problem_body(
    status: int,
    *,
    code: str,
    detail: str,
    recovery: Recovery,
    missing: str = "",
    reference: str = "",
    **beside: object,
) -> dict[str, Any]:
    """``code`` says what went wrong; ``type`` says no more than the status does.

    ``missing``: the claim, with its required value, or the level that a gate asks for.
    ``beside``: further members that an endpoint adds.
    """
    return {
        "type": "about:blank",
        "title": responses.get(status, ""),
        "status": status,
        "code": code,
        "detail": detail,
        "missing": missing,
        "recovery": str(recovery),
        "reference": reference,
        **beside,
    }
