"""Lets git use svc's sign-in: passwords for clones by https, and git's settings for that."""
