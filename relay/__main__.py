"""`relay`: serve, migrate and look after a node."""

from __future__ import annotations

import sys
from importlib.util import find_spec

# One library of the extra stands for all: they are installed together.
NEEDED = "sqlalchemy"


def main() -> None:
    """Run a command of the node; without the server's libraries, say how to install them and exit 1."""
    if find_spec(NEEDED) is None:
        sys.exit("relay: the server's libraries are not installed; run: pip install 'svc[relay]'")
    from relay.run.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
