"""Statements on listings, publications, dependencies and advisories."""
