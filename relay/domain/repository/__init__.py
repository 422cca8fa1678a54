"""Repositories as pages: what a link shows to people who have nothing installed."""
