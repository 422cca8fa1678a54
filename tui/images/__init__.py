"""Pictures of repositories in the terminal: decoded apart from the app, drawn as cells or by a protocol."""
