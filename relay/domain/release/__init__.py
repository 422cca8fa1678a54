"""Releases, their assets and signatures."""
