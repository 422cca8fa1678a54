"""Proposals: their rows, versions, branches and reviews, and the obstacles to merging them."""
