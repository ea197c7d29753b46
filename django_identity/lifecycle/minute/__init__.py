"""What is done each minute.

Here it is decided what is due, in which order, and when a run stops. What one row needs is decided
where its rule lives: ``said`` for re-fetches and events, ``leaving`` for erasures. Tasks, commands
and ``operators`` call it.

- ``upkeep``: one run; ``refetch``: one re-fetch; ``follow_up``: the site's handlers
"""
