"""The client: `svc`."""

__version__ = "0.1.0"

UTF8_NAMES = ("-X", "utf8")
"""Python's flags for a process of svc: it reads names as UTF-8, whatever the locale is."""
