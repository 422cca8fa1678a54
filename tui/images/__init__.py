"""Pictures of repositories in the terminal. They are decoded in a separate process, and drawn either as
characters or with a graphics protocol of the terminal."""
