"""Forks, and copying parts of another repository's history into a repository."""
