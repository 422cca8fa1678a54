"""git beside svc: passwords for clones by https, and the lines of git's settings for them."""
