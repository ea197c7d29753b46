"""What a person sees: sign-in, verification, consent and the account."""
