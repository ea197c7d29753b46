"""One serializer for each endpoint: members of requests are write-only, of answers read-only."""

from datetime import UTC
from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from django_identity.lifecycle.standing.standing import standing_with
from django_identity.models import LinkedIdentity
from django_identity.service.connect import LONGEST_PASTE
from django_identity.web.flow import may_lead_to

_Moment = partial(
    serializers.DateTimeField,
    read_only=True,
    allow_null=True,
    default_timezone=UTC,
)


class _Texts(serializers.ListField):
    child = serializers.CharField()


class StrictMixin:
    """Refuses unknown members."""

    def validate(self: Any, attrs: dict[str, Any]) -> dict[str, Any]:
        asked = {name for name, field in self.fields.items() if not field.read_only}
        if self.initial_data.keys() - asked:
            raise serializers.ValidationError(
                _("The body has a member that is not known."),
                "unknown_member",
            )
        return attrs


class LoginSerializer(StrictMixin, serializers.Serializer[dict[str, str]]):
    """``next``: a path of the site, or an address under an origin of ``CSRF_TRUSTED_ORIGINS``.

    ``scope``: one of ``LATER_SCOPES``, which a closed gate has named as ``missing``.
    """

    scope = serializers.CharField(allow_blank=True, default="", write_only=True)
    next = serializers.CharField(allow_blank=True, default="", write_only=True)
    authorization_url = serializers.URLField(read_only=True)

    def validate_next(self, address: str) -> str:
        if address and not may_lead_to(address):
            raise serializers.ValidationError(
                _("The next page is not one of this site."),
                "next_refused",
            )
        return address


class CallbackSerializer(serializers.Serializer[dict[str, str]]):
    """The query of the service's redirect, and the page to show next.

    Members that are not known are left out, because the service may add some (RFC 6749 §4.1.2).
    """

    state = serializers.CharField(trim_whitespace=False, write_only=True)
    code = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
    )
    error = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
    )
    next = serializers.CharField(read_only=True)


class ConnectSerializer(StrictMixin, serializers.ModelSerializer[LinkedIdentity]):
    """The pasted text; what the site stores now, and the masked owner of the code."""

    connect_code = serializers.CharField(max_length=LONGEST_PASTE, write_only=True)
    scopes = _Texts(read_only=True)
    kyc_status = serializers.SerializerMethodField()
    kyc_verified_at = _Moment()

    def get_kyc_status(self, identity: LinkedIdentity) -> str:
        """As every gate sees it."""
        return standing_with(identity, ()).kyc_status_now

    class Meta:
        model = LinkedIdentity
        read_only_fields = (
            "consent",
            "linked_via",
            "connect_person",
            "scopes",
            "kyc_level",
            "kyc_status",
            "kyc_provider",
            "kyc_verified_at",
        )
        fields = ("connect_code", *read_only_fields)


class MeSerializer(serializers.Serializer[dict[str, object]]):
    """The standing of a person, as every gate sees it. Name, address and subject are left out.

    ``docs/api.md`` says what each member means.
    """

    is_authenticated = serializers.BooleanField(read_only=True)
    is_linked = serializers.BooleanField(source="standing.is_linked", read_only=True)
    consent_revoked_at = _Moment(source="standing.barrier.since")
    kyc_level = serializers.CharField(
        source="standing.identity.kyc_level",
        read_only=True,
    )
    kyc_status = serializers.CharField(source="standing.kyc_status_now", read_only=True)
    kyc_holds_until = _Moment(source="standing.kyc_holds_until")
    claims = serializers.DictField(source="standing.proven_claims", read_only=True)
    scopes = _Texts(read_only=True)
    connect_scopes = _Texts(read_only=True)
    csrf_token = serializers.CharField(read_only=True)


class DisconnectSerializer(serializers.Serializer[dict[str, bool]]):
    """Whether an identity was linked, and whether the session was an identity session and ended."""

    disconnected = serializers.BooleanField(read_only=True)
    signed_out = serializers.BooleanField(read_only=True)
