"""What is done each minute.

The due rows, their order and the end of a run are decided here. What one row needs is decided where
its rule lives: ``said`` for re-fetches and events, ``leaving`` for erasures. Tasks, commands and
``operators`` call it.

- ``upkeep``: one run; ``refetch``: one re-fetch; ``follow_up``: the site's handlers
"""
