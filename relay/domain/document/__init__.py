"""Documents of an account: created, read, edited by several at once, archived and deleted."""
