"""Screens about actions and commands: the list of keys, the palette, command line, form, and the output of a
command."""
