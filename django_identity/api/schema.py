"""What an OpenAPI schema says of the refusals, on a site with drf-spectacular."""

from functools import partial
from typing import Any, TypeVar

from django.apps import apps
from rest_framework import serializers

from django_identity.views.problems import MEDIA_TYPE

Endpoint = TypeVar("Endpoint", bound=type[Any])

_Text = partial(serializers.CharField, read_only=True)


class ProblemSerializer(serializers.Serializer[dict[str, Any]]):
    """A problem of RFC 9457. ``docs/api.md`` says what each member means."""

    type = _Text()
    title = _Text()
    status = serializers.IntegerField(read_only=True)
    code = _Text()
    detail = _Text()
    missing = _Text()
    recovery = _Text()
    reference = _Text()
    retry_after = serializers.IntegerField(read_only=True, required=False)


class ConnectProblemSerializer(ProblemSerializer):
    """A problem with a Connect code."""

    code_spent = serializers.BooleanField(read_only=True)
    kyc_url = serializers.URLField(read_only=True, required=False)
    request_id = _Text(required=False)


def described(view: Endpoint) -> Endpoint:
    """Decorate an endpoint: every status of 400 and above answers its ``problem_class``."""
    if not apps.is_installed("drf_spectacular"):
        return view
    # Not at the top: the package works without it.
    from drf_spectacular.utils import extend_schema  # noqa: PLC0415

    responses: dict[Any, Any] = {200: view.serializer_class}
    for status in ("4XX", "5XX"):
        responses[status, MEDIA_TYPE] = view.problem_class
    decorated: Endpoint = extend_schema(responses=responses)(view)
    return decorated
