"""The signing keys (spec: GET /.well-known/jwks.json): rotation, publication, signing."""
