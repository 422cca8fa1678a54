"""Screens and tabs that are lists: inbox, runs, releases, security, insights."""
