"""One site for each peer: its settings, and its addresses beside them.

A settings module has ``APPS``, ``MIDDLEWARE``, ``BACKENDS``, ``START`` (the address at which a
sign-in begins), ``BY_FORM`` (whether that is a POST form) and ``settings(service)``.
"""
