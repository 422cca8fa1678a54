"""Makes test trees of third-party files: Python's standard library and the packages of this environment."""

from __future__ import annotations

import os
import random
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from localstore.core.storage.file_kind import kind_of

_SKIP = {"__pycache__", "site-packages", ".git", "dist", "build", "target", "venv", "node_modules"}
_TEXT = {".py", ".pyi", ".txt", ".md", ".rst", ".h", ".json", ".toml", ".cfg", ".c", ".html", ".js"}
_LARGE = 400_000  # tables and bundles above this many bytes are not typical source


def real_tree(into: Path, limit: int | None = None) -> int:
    """Copy the standard library and site-packages (without caches) into the folder `into`. Returns the number
    of files. Folders that svc's built-in rules ignore are not copied, so that svc and git see the same
    files."""
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


def text_tree(into: Path, files: int, size: int, seed: int = 1) -> None:
    """Write text files with `size` bytes in total: `files` files, 16 in each folder. The texts are pieces of
    the texts that `real_text` yields, cut at line ends. The same environment and seed make the same tree."""
    chance = random.Random(seed)
    weights = [chance.lognormvariate(0, 1.1) for _ in range(files)]
    unit = size / sum(weights)
    text, wanted, given = real_text(seed), 0.0, 0
    rest = b""
    for number, weight in enumerate(weights):
        wanted += weight * unit
        while len(rest) < wanted - given:
            rest += next(text)
        cut = max(int(wanted - given), 1)
        cut = rest.find(b"\n", cut - 1) + 1 or len(rest)
        folder = into / f"area{number // 512:03d}" / f"part{number // 16 % 32:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module{number:06d}.py").write_bytes(rest[:cut])
        rest, given = rest[cut:], given + cut


def real_text(seed: int) -> Iterator[bytes]:
    """Yields texts of the standard library and of this environment's packages, similar texts next to each
    other, without end. After the last text all come again with their letters exchanged. Exchanged texts
    compress as well as the originals, but share no content with them."""
    chance = random.Random(seed)
    roots = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    paths = sorted({path for root in roots for path in root.rglob("*") if path.suffix in _TEXT})
    alphabet = bytes(range(ord("a"), ord("z") + 1))
    letters = alphabet
    while True:
        turned = bytes.maketrans(alphabet, letters)
        for path in paths:
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            if 0 < len(data) < _LARGE and kind_of(data) == "text":
                yield data.translate(turned)
        letters = bytes(chance.sample(alphabet, len(alphabet)))


def binaries(into: Path, megabytes: int, each: int = 8, seed: int = 1) -> int:
    """Write files of `each` MiB of random bytes, `megabytes` MiB in total. Returns the number of files. The
    same seed makes the same files."""
    into.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    count = max(1, megabytes // each)
    for number in range(count):
        (into / f"part-{number:03d}.bin").write_bytes(chance.randbytes(each * 1024 * 1024))
    return count


def edit_some(root: Path, count: int, seed: int = 2) -> list[Path]:
    """Append a line to `count` random Python files. Returns their paths."""
    files = sorted(p for p in root.rglob("*.py") if p.is_file())
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    for number, path in enumerate(chosen):
        with path.open("a") as handle:
            handle.write(f"\n# edited {number}\n")
    return chosen


def stored_bytes(folder: Path) -> int:
    """The size in bytes of all files below a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
