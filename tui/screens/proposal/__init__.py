"""The screens about one proposal: the screen of the proposal itself, and the screen of its changes."""
