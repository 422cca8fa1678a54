"""The tab Settings of a repository, and the screen of the account."""
