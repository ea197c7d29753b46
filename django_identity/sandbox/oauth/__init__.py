"""OAuth 2.0 with PKCE (spec: Authentication): the rules, the token endpoint, how clients prove
who they are, and the signed tokens that may name a person. The consent screen is in ``pages``.
"""
