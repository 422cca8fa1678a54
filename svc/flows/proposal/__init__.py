"""Work on proposals: finding one, and what its versions have in common."""
