"""Proposals: their rows, versions, branches and reviews, and obstacles to a merge."""
