"""The one body of a refusal, from a gate and from the JSON API."""

#: The members of a problem (RFC 9457).
MEMBERS = {
    "type",
    "title",
    "status",
    "code",
    "detail",
    "missing",
    "recovery",
    "reference",
}
