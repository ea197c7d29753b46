"""OAuth 2.0 with PKCE (spec: Authentication): clients, rules, the consent screen and the tokens."""
