"""Benchmarks of issues and proposals: what lists, comments, events and merges cost the relay."""
