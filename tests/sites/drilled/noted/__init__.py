"""A database back end that leaves a file for each test database that is there."""
