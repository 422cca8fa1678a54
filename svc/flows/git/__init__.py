"""Helps git beside svc: passwords for clones by https, and git's settings for them."""
