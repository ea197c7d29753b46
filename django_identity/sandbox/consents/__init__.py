"""Consents (spec: States: Consent), and the notices and e-mails that tell a person which data an
application received.
"""
