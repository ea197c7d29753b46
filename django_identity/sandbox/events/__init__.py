"""Webhook events (spec: Events, Webhook signature).

A rule announces what it did (``announcing``); the event is queued with its cause (``deliveries``),
sent when that has committed (``sender``, ``courier``), and sent again until it is acknowledged.
``trigger`` sends one by hand. ``addresses`` says where events may go.
"""
