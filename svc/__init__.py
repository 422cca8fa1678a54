"""The client: `svc`."""

__version__ = "0.1.0"

UTF8_NAMES = ("-X", "utf8")
"""Python's flags for a process of svc: it reads names as UTF-8, whatever the locale is."""

OF_ONE_COMMAND = ("SVC_TOKEN", "SVC_SERVER", "SVC_REPO", "SVC_TURN", "SVC_DEBUG")
"""Variables of the command that somebody runs: a program that it leaves running does not get them."""
