"""What several rooms need, and what calls none of them.

Here it is decided when a level runs out, what a claim says, when a row is attempted again, and what
goes with the end of a consent. Every other room calls it.

- ``withdrawal``: the end of a consent; ``sessions``: on which identity a session rests
- ``kyc``, ``values``: levels, and what a claim says; ``retention``: what is kept of an event
- ``clocks``: how two clocks may differ; ``attempts``: when a row is due; ``runs``: of upkeep
- ``sealing``: how tokens are encrypted; ``notices``: e-mails to the account's owner
"""
