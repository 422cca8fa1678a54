"""Listens to servers and the agent while the app runs."""
