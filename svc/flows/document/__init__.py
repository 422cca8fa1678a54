"""Documents: the account's documents on the server, and documents of this device."""
