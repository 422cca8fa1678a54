"""Plans and payments of accounts. No payment provider is built in: every request is refused."""
