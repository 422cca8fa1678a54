"""Work of the node beside requests, what it says of itself, and verification."""
