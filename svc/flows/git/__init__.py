"""Lets git use svc's sign-in: gives git passwords for clones by https, and writes git's settings for that."""
