"""Who somebody is: accounts, sessions, device keys, pairing, tokens."""
