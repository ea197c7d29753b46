"""Documents (spec: Scopes): made on the spot, encrypted to the key of a trusted application. They
are not stored.
"""
