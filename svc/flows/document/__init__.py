"""Documents of the account, on the server, and documents that only this device has."""
