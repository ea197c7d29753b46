"""Instruments for tests: the clock, the switches (where the specification allows several readings),
the faults, and the log of received requests.
"""
