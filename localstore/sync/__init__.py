"""Keeps one working copy and one branch of a relay in sync (docs/design/004).

The unit is a lane: the text of one path on one branch, as merged from the updates of all who edit it."""
