"""Channels of branches, over real sockets."""
