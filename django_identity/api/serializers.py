"""Serializers of requests and responses."""

from datetime import UTC

from rest_framework import serializers

from django_identity.models import LinkedIdentity
from django_identity.service.connect_code import LONGEST_PASTE


class TextField(serializers.CharField):
    """A text. Django REST framework's own field takes numbers, too."""

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ConnectRequestSerializer(serializers.Serializer[dict[str, str]]):
    """The pasted text with the Connect code."""

    connect_code = TextField(max_length=LONGEST_PASTE, write_only=True)


class ConnectedSerializer(serializers.ModelSerializer[LinkedIdentity]):
    """What the site now stores, and the masked owner of the code, without the subject."""

    scopes = serializers.ListField(child=serializers.CharField(), read_only=True)
    kyc_verified_at = serializers.DateTimeField(
        read_only=True, allow_null=True, default_timezone=UTC
    )

    class Meta:
        model = LinkedIdentity
        fields = (
            "consent", "linked_via", "connect_person", "scopes", "kyc_level", "kyc_status",
            "kyc_provider", "kyc_verified_at",
        )  # fmt: skip
        read_only_fields = fields


class LoginRequestSerializer(serializers.Serializer[dict[str, str]]):
    """The page to show after the sign-in: a path of the site."""

    next = TextField(allow_blank=True, required=False, default="", write_only=True)


class StartedSerializer(serializers.Serializer[dict[str, str]]):
    """The address to which the frontend sends the browser."""

    authorization_url = serializers.URLField(read_only=True)


class CallbackRequestSerializer(serializers.Serializer[dict[str, str]]):
    """The query of the service's redirect: ``state``, and ``code`` or ``error``."""

    state = TextField(required=False, trim_whitespace=False, write_only=True)
    code = TextField(required=False, trim_whitespace=False, write_only=True)
    error = TextField(required=False, trim_whitespace=False, write_only=True)


class CompletedSerializer(serializers.Serializer[dict[str, str]]):
    """The page to show next."""

    next = serializers.CharField(read_only=True)


class MeSerializer(serializers.Serializer[dict[str, object]]):
    """The standing of a person, as every gate sees it, without name, address and subject.

    ``kyc_status`` is ``run_out`` for a level that no longer counts. The scopes are those that the
    site would ask for. ``csrf_token`` is for the header of the next request.
    """

    is_authenticated = serializers.BooleanField(read_only=True)
    is_linked = serializers.BooleanField(source="standing.is_linked", read_only=True)
    consent_revoked_at = serializers.DateTimeField(
        source="standing.consent_revoked_at", read_only=True, default_timezone=UTC, allow_null=True
    )
    kyc_level = serializers.CharField(source="standing.kyc_level", read_only=True)
    kyc_status = serializers.CharField(source="standing.kyc_status_now", read_only=True)
    kyc_holds_until = serializers.DateTimeField(
        source="standing.kyc_holds_until", read_only=True, default_timezone=UTC, allow_null=True
    )
    claims = serializers.JSONField(source="standing.proven_claims", read_only=True)
    scopes = serializers.ListField(child=serializers.CharField(), read_only=True)
    connect_scopes = serializers.ListField(child=serializers.CharField(), read_only=True)
    csrf_token = serializers.CharField(read_only=True)


class DisconnectedSerializer(serializers.Serializer[dict[str, bool]]):
    """Whether an identity was linked, and whether the session was an identity session and ended."""

    disconnected = serializers.BooleanField(read_only=True)
    signed_out = serializers.BooleanField(read_only=True)
