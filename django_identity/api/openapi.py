"""Describes the API's endpoints to drf-spectacular. Loaded where it is installed."""

from typing import Any

from drf_spectacular.extensions import OpenApiViewExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers

from django_identity.api import serializers as told
from django_identity.exceptions import Recovery
from django_identity.views.problems import MEDIA_TYPE, title

# Wrong credentials, a foreign page, another method, and an Accept header that wants no JSON.
OF_ALL = (401, 403, 405, 406)
# A body that cannot be read, and what goes wrong at the service.
OF_CALLS = (400, 413, 415, 500, 502, 503)


class Problem(serializers.Serializer[dict[str, Any]]):
    """Why a request is refused (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="A stable code.")
    detail = serializers.CharField(help_text="A sentence for the person, in their language.")
    missing = serializers.CharField(
        allow_blank=True, help_text="The claim or level that a gate asks for."
    )
    recovery = serializers.ChoiceField(choices=[str(each) for each in Recovery])
    reference = serializers.CharField(allow_blank=True, help_text="The id of the log line.")
    code_spent = serializers.BooleanField(required=False)
    kyc_url = serializers.CharField(required=False)
    retry_after = serializers.IntegerField(required=False)


@extend_schema_field(
    {"type": "object", "additionalProperties": {"oneOf": [{"const": True}, {"type": "string"}]}}
)
class Claims(serializers.JSONField):
    """Claim name -> ``true`` or its text."""


class Me(told.MeSerializer):
    claims = Claims()


class Endpoint(AutoSchema):
    """What an endpoint asks for and answers.

    It has two addresses: one for the default application, and one with an alias.
    """

    def __init__(self, asks: Any, answers: Any, problems: tuple[int, ...]) -> None:
        super().__init__()
        self._asks = asks
        self._responses: dict[Any, Any] = {(200, "application/json"): answers}
        for status in sorted({*OF_ALL, *problems}):
            problem = OpenApiResponse(Problem, description=title(status))
            self._responses[status, MEDIA_TYPE] = problem
        # A path that is none of the site's has the site's own page.
        self._responses[404, MEDIA_TYPE] = OpenApiResponse(Problem, description="Not Found")
        self._responses[404, "text/html"] = OpenApiResponse(str, description="Not Found")

    def get_operation_id(self) -> str:
        name = f"identity_{type(self.view).__name__.removesuffix('View').lower()}"
        return f"{name}_of_application" if "{alias}" in self.path else name

    def get_request_serializer(self) -> Any:
        return self._asks

    def get_response_serializers(self) -> Any:
        return self._responses


def describe(view: str, asks: Any, answers: Any, *problems: int) -> None:
    """Register what the endpoint of ``view`` asks for and answers."""

    class Described(OpenApiViewExtension):  # type: ignore[no-untyped-call]
        target_class: Any = f"django_identity.api.views.{view}"

        def view_replacement(self) -> Any:
            schema = Endpoint(asks, answers, problems)
            own = {"__doc__": self.target_class.__doc__, "schema": schema}
            return type(view, (self.target_class,), own)


describe("MeView", None, Me)
describe("LoginView", told.LoginRequestSerializer, told.StartedSerializer, *OF_CALLS)
describe("CallbackView", told.CallbackRequestSerializer, told.CompletedSerializer, *OF_CALLS)
describe(
    "ConnectView", told.ConnectRequestSerializer, told.ConnectedSerializer, 409, 429, *OF_CALLS
)
describe("DisconnectView", None, told.DisconnectedSerializer)
