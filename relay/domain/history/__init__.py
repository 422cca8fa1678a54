"""Sealed history in forms for reading: lists, trees, files, blame, comparisons, archives."""
