"""Webhooks: who is told, what, and how it gets there."""
