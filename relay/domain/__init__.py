"""The relay by subject: a folder for each, with its rules, its statements (`rows`) and its routes."""
