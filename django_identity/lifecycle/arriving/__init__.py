"""How a person comes: by the button and the callback, or with a Connect code.

The subject, the policy's answer and the account are decided here, and linked in one transaction.
What the service says later is decided in ``said``, and how a person leaves in ``leaving``. Views
and the API call ``sign_in`` and ``connect``.

- ``sign_in``, ``connect``: from the button to the callback; with a Connect code
- ``identification``: the subject of an answer; ``request``: how they came, and what was said
- ``decisions``: who may link an identity, and who signs in; ``questions``: what the policy is asked
- ``linking``: the transaction of a new or returning person; ``arrivals``: its writes
- ``accounts``: the site's users and their fields; ``addresses``: the form of an e-mail address
"""
