"""Documents that an account has on the server, and documents that only this device has."""
