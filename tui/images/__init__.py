"""Pictures of repositories in the terminal: decoded in a separate process, drawn as cells or by a protocol of
the terminal."""
