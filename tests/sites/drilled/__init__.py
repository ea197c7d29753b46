"""A small site that keeps its promises, and breaks the one that ``$SITE_BREAKS`` names."""
