"""All rules and all transactions, a file for each word. ``.importlinter`` has their order.

``sign_in``, ``connect``, ``linking``, ``accounts``: how a person comes.
``standing``: which gates are open. ``upkeep``: what is done each minute, with ``refetch``,
``follow_up``, ``tokens``, ``key_sets`` and ``claims``. ``events``: what the service says.
``withdrawal``, ``erasure``, ``dossier``: how a person leaves. ``operators/``: reports and actions.
"""
