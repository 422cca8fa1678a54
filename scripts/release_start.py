"""The code that the one-file program of svc runs first. It unpacks the packages once into the user's cache,
then runs them."""

import os
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

DIGEST = "@DIGEST@"  # of the packages
PYTHON = "@PYTHON@"
KEPT = 30 * 24 * 3600  # seconds that the packages of another version stay without a start


def _cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "svc" / "programs"


def _unpack_packages(cache: Path) -> Path:
    """The folder with the unpacked packages, unpacked now if it is missing. The folder gets its name when it
    is complete, so an interrupted start leaves no incomplete folder of this name."""
    there = cache / DIGEST
    if not there.is_dir():
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
        try:
            with zipfile.ZipFile(sys.argv[0]) as packed:
                packed.extractall(part, [one for one in packed.namelist() if one.startswith("packages/")])
            try:
                (part / "packages").rename(there)
            except OSError:
                if not there.is_dir():  # else another start was first
                    raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
        _forget_old(cache)
    os.utime(there)
    return there


def _forget_old(cache: Path) -> None:
    for other in cache.iterdir():
        if other.name != DIGEST and other.stat().st_mtime < time.time() - KEPT:
            shutil.rmtree(other, ignore_errors=True)


def main() -> None:
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != PYTHON:
        sys.exit(f"svc: this file runs with Python {PYTHON}, and this is {sys.version.split()[0]}")
    try:
        packages = str(_unpack_packages(_cache()))
    except OSError as error:
        sys.exit(f"svc: the packages cannot be unpacked into {_cache()}: {error.strerror or error}")
    sys.path[:0] = [packages]
    known = os.environ.get("PYTHONPATH")  # programs that svc starts with this Python find them too
    os.environ["PYTHONPATH"] = packages + (os.pathsep + known if known else "")
    from svc.__main__ import main as run

    run()


main()
