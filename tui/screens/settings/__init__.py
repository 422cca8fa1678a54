"""Settings of a repository."""
