"""A URLconf of the site that cannot be imported."""

raise LookupError("a secret of the site")
