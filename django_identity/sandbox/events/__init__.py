"""Webhook events (spec: Events, Webhook signature).

A rule announces a change (``event``). The event is stored in the same transaction
(``deliveries``), sent by one thread after the commit (``sender``), and retried until it is
acknowledged.
"""
