"""The node as a whole: periodic work, health and version, verification of all stored data."""
