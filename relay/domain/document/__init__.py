"""Documents of an account: made, read, edited by several at once, archived and deleted."""
