"""The node itself: periodic work, health and version, verification of all stored data."""
