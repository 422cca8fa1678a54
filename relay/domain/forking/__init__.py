"""Forks, and the parts of another repository's history that a repository takes over."""
