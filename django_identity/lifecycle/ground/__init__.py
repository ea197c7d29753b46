"""What several rooms need. It calls no other room.

The end of a level, the meaning of a claim, the next attempt of a row and the losses at the end of a
consent are decided here. Every other room calls it.

- ``withdrawal``: the end of a consent; ``sessions``: what a session rests on, and what ends it
- ``kyc``, ``values``: levels, and the meaning of a claim; ``verified``: an answer and its proof
- ``retention``: how long events stay
- ``clocks``: how two clocks may differ; ``runs``: of upkeep
- ``attempts``: when a row is due; ``backoff``: how long to wait after failures
- ``sealing``: how tokens are encrypted; ``notices``: e-mails to the account's owner
"""
