"""The door by which errors of the site's own code leave the package.

A policy, a receiver or a user model of the site may raise anything in the middle of a flow. An
error tracker would keep its message, and the variables of each frame of ours: a person. So a public
function lets out neither: the log gets the error as text, and the caller one error of ours.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    ImproperlyConfigured,
    PermissionDenied,
    SuspiciousOperation,
)
from django.http import Http404, HttpResponseBase
from django.http.multipartparser import MultiPartParserError

from django_identity import database
from django_identity.exceptions import (
    IdentityError,
    StorageUnavailable,
    UnexpectedError,
    new_reference,
)
from django_identity.logs import LogEvent, log_trouble

P = ParamSpec("P")
T = TypeVar("T")

#: Django answers these, or a developer has to mend the call.
PASSED = (
    *(Http404, PermissionDenied, SuspiciousOperation, BadRequest, MultiPartParserError),
    *(ImproperlyConfigured, database.Misused),
)


class _Tests:
    """``see_errors``: raise each error as it is, as with ``DEBUG``. The plugin and drill set it."""

    see_errors = False


tests = _Tests()


def boundary(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function: its errors leave as ``told`` says.

    No frame of the function, none below it and no cause leaves with an error of ours.
    """

    @wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            stands_for_it = told(error)
            if _is_seen(error, stands_for_it):
                raise
            del args, kwargs
        stands_for_it.__context__ = None
        raise stands_for_it.with_traceback(None) from None

    return wrapped


def _is_seen(error: Exception, stands_for_it: Exception) -> bool:
    if settings.DEBUG or tests.see_errors:
        return True
    return stands_for_it is error and not isinstance(error, IdentityError)


def told(error: Exception) -> Exception:
    """``error`` itself if it may be seen. Else log it as text, and return what stands for it."""
    # Some packages, such as allauth, raise a response.
    is_answer = isinstance(getattr(error, "response", None), HttpResponseBase)
    is_ours = isinstance(error, (IdentityError, *PASSED))
    if is_ours or is_answer or settings.DEBUG or tests.see_errors:
        return error
    if isinstance(error, database.BROKEN):
        return StorageUnavailable(database.name_of(error))
    reference = new_reference()
    unexpected = UnexpectedError(f"{type(error).__name__}, reference {reference}")
    unexpected.reference = reference
    log_trouble(LogEvent.UNEXPECTED, error, reference=reference)
    return unexpected
