"""Documents of users: JSON content stored as a Yjs document, and the operations that change it."""
