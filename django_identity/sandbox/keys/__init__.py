"""The signing keys (spec: GET /.well-known/jwks.json): rotated, published, and signed with."""
