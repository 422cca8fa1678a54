"""What people do together: issues, proposals, reviews, runs, access."""
