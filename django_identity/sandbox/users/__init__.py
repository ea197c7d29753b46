"""People (spec: Profile, KYC status): their accounts, the user endpoints, verification by test
number, and the deletion of what is kept about them.
"""
