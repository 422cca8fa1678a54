"""The client's side of the lane protocol (docs/design/004): one working copy against one branch.

A lane is the text of one path on one branch, as merged from the updates of all who edit it.
"""
