"""Consents (spec: States: Consent): granted and revoked, with the notices and e-mails that tell a
person what an application received.
"""
