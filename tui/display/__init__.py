"""Sends a terminal only the cells that changed."""
