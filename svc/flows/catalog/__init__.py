"""Signed publications, and upgrades of this program."""
