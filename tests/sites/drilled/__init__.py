"""A small site that keeps its promises, and breaks those that ``$SITE_BREAKS`` names."""
