"""Work on the cache of models."""
