"""Protection of branches by rules."""
