"""`svc`. `--version` answers before anything else is loaded."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from svc import __version__


def main() -> None:
    """Run the command of this process's arguments and end with its exit code."""
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"svc {__version__}")
        return
    if os.environ.get("SVC_COMPLETE"):  # a shell asks what can stand at the cursor
        from svc.cmd.complete import answer

        print(answer(words, os.environ, Path.cwd()), end="")
        return
    from svc.cmd.app import run

    sys.exit(run(words))


if __name__ == "__main__":
    main()
