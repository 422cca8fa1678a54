"""Documents: those of the account, on the server, and those that only this device has."""
