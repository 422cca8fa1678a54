"""The command `relay`, which serves and maintains a node."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec

# One library of the extra stands for all: they are installed together.
NEEDED = "sqlalchemy"


def main() -> None:
    """Run a command of the node. If a library that the server needs is missing, print how to install it and
    exit with 1."""
    if find_spec(NEEDED) is None:
        sys.exit("relay: the server's libraries are not installed; run: pip install 'svc[relay]'")
    from relay.run.cli import main as run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal need not know every character

    sys.exit(run())


if __name__ == "__main__":
    main()
