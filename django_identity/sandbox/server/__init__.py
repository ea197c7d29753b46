"""How the sandbox runs and answers: the HTTP server, its schema, who calls, the JSON envelope, and
the guard that keeps it out of a site's process.
"""
