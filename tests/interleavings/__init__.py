"""All orders of what happens to a person at once, with a crash at each step."""
