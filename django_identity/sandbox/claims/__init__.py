"""Claims and the credential that proves them (spec: Claim, Credential; States: Claim)."""
