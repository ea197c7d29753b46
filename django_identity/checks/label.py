"""What stands before the number of each check's id."""

LABEL = "django_identity"
