"""Merges of sealed trees. They are computed when they are prepared, and landed (made the head of their
branch) when they are signed.
"""
