"""The node itself: periodic work, health and version, verification of what is stored."""
