"""The people with a password whom ``serve`` creates."""

PASSWORD = "a password for tests alone"
OPERATOR = "olu"
#: One for each step that begins with an account.
LINKING, CONNECTING, MEMBER = MEMBERS = ("kemi", "tunde", "ada")
