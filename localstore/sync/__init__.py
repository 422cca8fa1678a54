"""The device's side of the lane protocol (design/lane-protocol): one working copy against one branch."""
