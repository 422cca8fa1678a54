"""Signatures of releases, and upgrades of this program."""
