"""Small complete sites, each with its own settings, walked by the same tests.

- ``table``: one row per site
- ``test_walk``: the walk; every site takes every step
- ``running``, ``browser``: the test's end: the processes, and a person with a browser
- ``serve``: the site's process
- ``drilled``: a shop that breaks one promise at a time, which ``test_drill`` drills
- ``plain``: the site on which the others are built

To add a site, make a folder with ``settings.py`` (it imports all of ``plain.settings`` and changes
what is special) and a row in ``table``. The tests import nothing of the package but its public
names, so that a site could run them.
"""
