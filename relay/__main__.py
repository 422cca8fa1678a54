"""`relay`: serve, migrate and look after a node."""

from __future__ import annotations

import sys

from relay.run.cli import main as run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
