"""Screens and tabs that consist of a list: inbox, runs, releases, security, insights."""
