"""Flows that wait for events."""
