"""What goes in and out as JSON."""

from __future__ import annotations

from datetime import UTC

from rest_framework import serializers

from django_identity.lifecycle.standing import Standing
from django_identity.models import LinkedIdentity
from django_identity.service.connect_code import LONGEST_PASTE


class ConnectRequestSerializer(serializers.Serializer[dict[str, str]]):
    """A code, as it was pasted."""

    connect_code = serializers.CharField(max_length=LONGEST_PASTE, write_only=True)


class ConnectedSerializer(serializers.ModelSerializer[LinkedIdentity]):
    """What the site now holds: no name, no address, no subject."""

    kyc_verified_at = serializers.DateTimeField(default_timezone=UTC)

    class Meta:
        model = LinkedIdentity
        fields = (
            "consent",
            "scopes",
            "kyc_level",
            "kyc_status",
            "kyc_provider",
            "kyc_verified_at",
        )
        read_only_fields = fields


class LoginRequestSerializer(serializers.Serializer[dict[str, str]]):
    """Where the person wants to go afterwards: a path of the site."""

    next = serializers.CharField(required=False, default="", write_only=True)


class DepartureSerializer(serializers.Serializer[dict[str, str]]):
    """Where the frontend sends the browser."""

    authorization_url = serializers.URLField(read_only=True)


class CallbackRequestSerializer(serializers.Serializer[dict[str, str]]):
    """The query that the service's redirect carried: ``state``, and ``code`` or ``error``."""

    state = serializers.CharField(required=False, trim_whitespace=False, write_only=True)
    code = serializers.CharField(required=False, trim_whitespace=False, write_only=True)
    error = serializers.CharField(required=False, trim_whitespace=False, write_only=True)

    def values_of(self, name: str) -> list[str]:
        """That member as a list of one; empty if it is not there, or the request has no form."""
        if not self.is_valid() or name not in self.validated_data:
            return []
        return [self.validated_data[name]]


class ArrivalSerializer(serializers.Serializer[dict[str, str]]):
    """Where the person wanted to go."""

    next = serializers.CharField(read_only=True)


class StandingSerializer(serializers.Serializer[Standing]):
    """What holds for a person now, as every gate sees it: no name, no address, no subject."""

    is_linked = serializers.BooleanField(read_only=True)
    consent_revoked_at = serializers.DateTimeField(read_only=True, default_timezone=UTC)
    kyc_level = serializers.CharField(read_only=True)
    kyc_status = serializers.CharField(read_only=True)
    claims = serializers.JSONField(source="proven_claims", read_only=True)


class DisconnectedSerializer(serializers.Serializer[dict[str, bool]]):
    """Whether there was a bond, and whether the browser's session rested on it and has ended."""

    disconnected = serializers.BooleanField(read_only=True)
    signed_out = serializers.BooleanField(read_only=True)
