"""Trees that nobody here made: Python's own standard library and the packages of this environment."""

from __future__ import annotations

import os
import random
import shutil
import sysconfig
from pathlib import Path

_SKIP = {"__pycache__", "site-packages", ".git", "dist", "build", "target", "venv", "node_modules"}


def real_tree(into: Path, limit: int | None = None) -> int:
    """Copy the standard library and site-packages (no caches) below `into`; the number of files copied.
    Folders whose names the built-in ignore rules leave out are left out here too, so that both tools see
    the same files."""
    count = 0
    for name in ("stdlib", "purelib"):
        source = Path(sysconfig.get_path(name))
        for folder, folders, files in os.walk(source):
            folders[:] = sorted(f for f in folders if f not in _SKIP and not f.endswith(".egg-info"))
            for file in sorted(files):
                origin = Path(folder) / file
                if file.endswith((".pyc", ".tmp", ".swp", "~")) or origin.is_symlink():
                    continue
                if origin.stat().st_size > 15 * 1024 * 1024:
                    continue
                target = into / name / origin.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin, target)
                count += 1
                if limit is not None and count >= limit:
                    return count
    return count


def binaries(into: Path, megabytes: int, each: int = 8, seed: int = 1) -> int:
    """Incompressible files of `each` MiB, the same for the same seed."""
    into.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    count = max(1, megabytes // each)
    for number in range(count):
        (into / f"part-{number:03d}.bin").write_bytes(chance.randbytes(each * 1024 * 1024))
    return count


def edit_some(root: Path, count: int, seed: int = 2) -> list[Path]:
    """Append a line to `count` Python files, chosen by seed; which ones."""
    files = sorted(p for p in root.rglob("*.py") if p.is_file())
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    for number, path in enumerate(chosen):
        with path.open("a") as handle:
            handle.write(f"\n# edited {number}\n")
    return chosen


def stored_bytes(folder: Path) -> int:
    """Disk bytes of everything below a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
