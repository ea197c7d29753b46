"""The door by which errors of the site's own code leave the package.

A policy, a receiver or a user model of the site may raise anything in the middle of a flow. An
error tracker would keep the error's message and the variables of our frames, and both may have data
about a person. So a door lets neither out. The log gets the error's class and place, never its
message (``logs.log_trouble``). The caller gets ``UnexpectedError`` with the same reference.

Each call from outside comes in by one door: a page, an endpoint of the API, a page of the admin, a
gate, a task, a command, the backend, or a function of ``flows``. The rooms below have no door.
"""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    ImproperlyConfigured,
    PermissionDenied,
    SuspiciousOperation,
)
from django.core.management import CommandError
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
    *(ImproperlyConfigured, CommandError, database.Misused),
)


class _Tests:
    """``see_errors``: raise each error as it is, as with ``DEBUG``. The plugin and drill set it."""

    see_errors = False


tests = _Tests()


def boundary(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function, sync or async: its errors leave as ``told`` says."""
    if iscoroutinefunction(call):
        awaited: Callable[P, T] = _awaited(call)
        return awaited

    @wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        # Whatever the site's own code raises: ``told`` logs it.
        except Exception as error:
            if is_seen():
                raise
            stands_for_it = told(error)
            del args, kwargs
        raise stands_for_it

    return wrapped


def _awaited(call: Any) -> Any:
    """The same of an async function. The frames of its thread hold its arguments, too."""

    @wraps(call)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return await call(*args, **kwargs)
        except Exception as error:
            if is_seen():
                raise
            stands_for_it = told(error)
            del args, kwargs
        raise stands_for_it

    return wrapped


def is_seen() -> bool:
    """Whether each error is raised as it is."""
    return settings.DEBUG or tests.see_errors


def told(error: Exception) -> Exception:
    """What leaves in place of ``error``, without a frame and without a cause.

    Errors of ours, and answers to the person, stand for themselves. Any other error is logged.
    """
    stands_for_it = _stand_in(error)
    stands_for_it.__cause__ = stands_for_it.__context__ = None
    return stands_for_it.with_traceback(None)


def _stand_in(error: Exception) -> Exception:
    # Some packages, such as allauth, raise a response.
    is_answer = isinstance(getattr(error, "response", None), HttpResponseBase)
    if is_answer or isinstance(error, (IdentityError, *PASSED)):
        return error
    if database.is_broken(error):
        return StorageUnavailable(database.name_of(error))
    reference = new_reference()
    unexpected = UnexpectedError(f"{type(error).__name__}, reference {reference}")
    unexpected.reference = reference
    log_trouble(LogEvent.UNEXPECTED, error, reference=reference)
    return unexpected
