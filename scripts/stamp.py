"""Writes the constants of `relay/base/edition.py` into a copy of the sources, and can build that copy.

python -m scripts.stamp EDITION --into FOLDER      a copy of the packages with these constants
python -m scripts.stamp EDITION --build dist       the wheel of such a copy
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import typing
from datetime import UTC, datetime
from pathlib import Path

from relay.base import edition

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("svc", "tui", "relay", "localstore", "llm", "pyproject.toml", "README.md", "LICENSE")
EDITIONS: tuple[str, ...] = typing.get_args(edition.Edition)


def stamp_source(source: str, name: str, commit: str, built_at: str) -> str:
    """The text of `relay/base/edition.py` with the given constants. `source`: the text before; `name`: the
    edition. Raises ValueError if the edition does not exist, or the text lacks one of the constants."""
    if name not in EDITIONS:
        raise ValueError(f"there is no edition {name}; the editions are {', '.join(EDITIONS)}")
    for constant, value in (("EDITION", name), ("COMMIT", commit), ("BUILT_AT", built_at)):
        pattern = rf'(?m)^({constant}: Final(?:\[Edition\])? = )"[^"]*"'
        source, count = re.subn(pattern, lambda found, value=value: f'{found[1]}"{value}"', source)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"relay/base/edition.py has no constant {constant}")
    return source


def copy(into: Path, name: str) -> None:
    """Copy the packages and their project file into the folder `into`, with the constants of this build."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, into / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, into / part)
    built_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    file = into / "relay" / "base" / "edition.py"
    file.write_text(stamp_source(file.read_text("utf-8"), name, commit(), built_at), "utf-8")


def commit() -> str:
    """The id of the commit of this checkout; `unknown` outside of a checkout."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("edition", choices=EDITIONS)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--into", type=Path)
    where.add_argument("--build", type=Path)
    options = parser.parse_args()
    if options.into:
        options.into.mkdir(parents=True)
        copy(options.into, options.edition)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder), options.edition)
        wheel = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(options.build),
        ]
        return subprocess.run([*wheel, folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
