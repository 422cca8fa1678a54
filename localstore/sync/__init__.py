"""Keeps one working copy and one branch of a relay in sync (docs/design/004).

Each text is synced as a lane: the text of one path on one branch, merged from the updates of everybody who
edits it."""
