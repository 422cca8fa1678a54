"""Forks, and the parts of another repository's history that a repository copies."""
