"""Connect (spec: Connect code, Connect redemption result, Connect states): one-time codes, what an
application requires of a person, and the redemption at POST /connect/request.
"""
