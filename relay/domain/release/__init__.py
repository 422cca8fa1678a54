"""Releases, their assets, and what is signed of them."""
