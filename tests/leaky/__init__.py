"""An app of a careless site: copies of people's data in places that no erasure knows."""
