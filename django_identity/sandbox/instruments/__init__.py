"""What a test turns and reads: the clock by which everything expires, the switches where the
specification allows several readings, ordered faults, and the log of received requests.
"""
