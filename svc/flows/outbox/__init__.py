"""Actions that wait for a server: what they are, and how they are sent."""
