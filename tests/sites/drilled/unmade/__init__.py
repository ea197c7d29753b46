"""A database back end that makes no test database, as a managed one cannot."""
