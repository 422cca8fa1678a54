"""Sealed history as people read it: lists, trees, files, blame, comparisons, archives."""
