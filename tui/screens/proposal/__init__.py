"""Proposals: one proposal, and its changes."""
