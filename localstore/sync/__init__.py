"""The client's side of the lane protocol (docs/design/004): one working copy against one branch."""
