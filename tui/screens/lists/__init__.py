"""Lists: inbox, runs, releases, security, insights."""
