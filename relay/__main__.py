"""`relay`: serve, migrate and look after a node."""
