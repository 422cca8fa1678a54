"""The files of a repository: tree, text, history, comparison, and the overview."""
