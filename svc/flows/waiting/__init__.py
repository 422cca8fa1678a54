"""Flows that wait for something to happen."""
