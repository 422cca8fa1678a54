"""Tables of collaboration: issues, proposals, access, runs."""
