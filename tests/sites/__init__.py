"""Small complete sites, walked by the same tests.

- ``site_table``: one row per site; ``settings`` and ``urls``: what each changes of ``plain``
- ``test_walk``: the walk; every site takes every step
- ``running_site``, ``browser``: the test's end: the processes, and a person with a browser
- ``serve``: the site's process
- ``drilled``: a shop that breaks one promise at a time, which ``test_drill`` drills

The tests import nothing of the package but its public names, so that a site could run them.
"""
