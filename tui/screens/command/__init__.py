"""Actions and commands: keys and palette, and the output of a command."""
