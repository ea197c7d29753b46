"""OAuth 2.0 with PKCE (spec: Authentication): the rules, the token endpoint, client authentication,
and the signed tokens that may name a person. The consent screen is in ``pages``.
"""
