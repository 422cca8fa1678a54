"""Rules of branches."""
