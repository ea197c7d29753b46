"""What a person sees: sign-in, verification, consent, the account and Connect codes."""
