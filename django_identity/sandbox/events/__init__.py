"""Webhook events (spec: Events, Webhook signature).

A rule announces a change (``announcing``). The event is stored in the same transaction
(``deliveries``), sent after the commit (``sender``, ``courier``), and retried until it is
acknowledged. ``trigger`` sends one event by hand. ``addresses`` checks webhook addresses.
"""
