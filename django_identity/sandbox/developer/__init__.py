"""What a developer does (spec: Developer endpoints): applications and their secrets, the endpoints
that take the portal session token, and the pages of the portal with their session.
"""
