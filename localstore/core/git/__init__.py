"""Objects of git as bytes: blobs, trees, commits and packs without deltas.

Everything here is a pure function, because git ids of a repository must be the same on every machine. Files
have the mode 100644 and directories 40000; svc stores no executable bit."""
