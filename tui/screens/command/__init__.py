"""Screens for actions and commands: the list of keys, the palette, the command line, the form of a command,
and the output of a command."""
