"""The screens about one proposal: the proposal itself, and its changes."""
