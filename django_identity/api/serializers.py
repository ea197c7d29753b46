"""What goes in and out as JSON."""

from __future__ import annotations

from datetime import UTC

from rest_framework import serializers

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
