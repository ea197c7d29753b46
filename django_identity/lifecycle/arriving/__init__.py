"""How a person comes: by the button and the callback, or with a Connect code.

Here it is decided who a person is, whom the policy lets in, and which account is linked, in one
transaction. What the service says later is decided in ``said``, and how a person leaves in
``leaving``. Views and the API call ``sign_in`` and ``connect``.

- ``sign_in``, ``connect``: from the button to the callback; with a Connect code
- ``identification``: who came back from the service
- ``decisions``: who may link an identity, and who signs in; ``questions``: what the policy is asked
- ``linking``: the transaction in which an identity is linked; ``arrivals``: how it takes what came
- ``accounts``: the site's users and their fields; ``addresses``: what an e-mail address is
"""
