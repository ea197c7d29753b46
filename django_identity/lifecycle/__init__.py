"""All rules and all transactions, a file for each word. ``.importlinter`` has their order.

How a person comes:

- ``sign_in``, ``connect``: from the button to the callback; with a Connect code, and what that may
- ``identification``: who came back from the service
- ``decisions``: who may link an identity, and who signs in; ``questions``: what the policy is asked
- ``linking``: the transaction in which an identity is linked; ``arrivals``: how it takes what came
- ``accounts``: the site's users and their fields; ``addresses``: what an e-mail address is

What opens a gate:

- ``standing``: which gates are open; ``shortfalls``: why the others are closed
- ``values``: what a claim says; ``kyc``: when a level runs out
- ``scopes``: how a gate with a scope opens
- ``step_up``: how a recent sign-in is proven
- ``sessions``: on which identity a session rests, and what ends it

What is read from the service:

- ``upkeep``: what is done each minute; ``runs``: when it began, and its pause
- ``due``: when an identity is due; ``refetch``: one re-fetch; ``claims``: what an answer changes
- ``tokens``: who may refresh; ``sealing``: how tokens are encrypted
- ``key_sets``: which keys are believed

What the service says:

- ``events``: one delivery; ``effects``: what it does, and what a late one does
- ``retention``: what is kept of an event
- ``clocks``: by how much two clocks may differ; ``follow_up``: the site's handlers
- ``attempts``: when an event or an erasure is due

How a person leaves:

- ``withdrawal``: the end of a consent, and what goes with an identity; ``disconnecting``
- ``erasure``: what erases; ``audit``: what an erasure left
- ``dossier``: all tables with personal data; ``notices``: e-mails to the account's owner

``operators/`` has what operators see and do.
"""
