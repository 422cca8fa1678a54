"""Benchmarks of issues and proposals: what lists, comments, watchers and merges cost the relay."""
