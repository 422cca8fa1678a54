"""Forks, and what one repository takes of another's history."""
