"""The package's commands, a file for each. ``management.command`` says what a new one needs."""
