"""Uploads files as assets of releases, and downloads assets into a folder."""
