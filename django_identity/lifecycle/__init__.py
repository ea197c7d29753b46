"""What happens: every rule and every transaction, and nothing else. Read from top to bottom:

entrances   ``sign_in`` · ``connect`` · ``standing``
steps       ``linking`` · ``claims``
primitives  ``authorization_requests`` · ``tokens`` · ``consent`` · ``key_sets`` · ``dossier``
            · ``redemptions`` · ``tries`` · ``site_users``
"""
