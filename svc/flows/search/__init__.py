"""Searches in the texts of a folder or of a seal."""
