"""Documents of users: JSON content held as a Yjs document, and the operations that change it."""
