"""All rules and all transactions, in six packages. A package imports only from those below it.

``operators/``  reports and actions for the site's operators
``arrival/``    sign-in, linking, Connect codes  |  ``standing/``  which gates are open for a user
``upkeep/``     re-fetches, refreshes, event handlers, key sets
``erasure/``    erasure, retention, and the list of all tables with personal data
``events/``     webhook events: each is stored once and applied once
"""
