"""Objects of git as bytes: blobs, trees, commits and packs without deltas.

Everything here is pure, since the ids of a repository are the same for everybody and for ever: they depend on
nothing but what is given. Files have the mode 100644 and directories 40000; svc stores no executable bit.
"""
