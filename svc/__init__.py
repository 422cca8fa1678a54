"""The client: `svc`."""

__version__ = "0.1.0"
