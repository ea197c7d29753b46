"""Connect (spec: Connect code, Connect redemption result, Connect states): one-time codes, the
verification policies of applications, and the redemption at POST /connect/request.
"""
