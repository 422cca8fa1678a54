"""What tests watch of a relay while it answers."""
