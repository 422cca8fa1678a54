"""Live editing: the frontier of a branch, lanes, epochs, and how edits land in seals."""
