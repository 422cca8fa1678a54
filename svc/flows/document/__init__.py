"""Documents: those of the account on the server, and those of this device."""
