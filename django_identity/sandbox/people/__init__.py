"""People (spec: Profile, KYC status): accounts, what is shared, verification, and their pages."""
