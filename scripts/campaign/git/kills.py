"""Kills the relay while it builds what git reads: scripts.campaign.git.kills [--repository .] [--places 20].

    python -m scripts.campaign.git.kills --repository ../flask --most 1000

A relay gets a seal for each commit of the first-parent line of a repository. Two clones by git without a kill
show which ids are right, and how many bytes the relay writes to its cache for a clone. Then `--places` rounds
follow. In each, the cache is deleted, git begins to clone, and the relay gets SIGKILL when it has written a
part of these bytes. The part grows from round to round; in the last rounds the relay is joining packs when it
is killed. In every second round it is killed twice: first at half of the part, then, after it has continued,
at the whole part. After each round the relay starts again, and a clone must have the same ids, pass
`git fsck --strict`, and leave no temporary file.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from relay.domain.git.cache import Cache
from scripts.campaign.git.places import (
    CheckFailed,
    GitProgram,
    RestartableRelay,
    history,
    relay_on,
    require,
    say,
)
from scripts.campaign.git.real import import_commits
from scripts.campaign.git.source import Source

PATIENCE = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repository", type=Path, default=Path())
    parser.add_argument("--most", type=int, default=1000, help="the oldest commits to import")
    parser.add_argument("--places", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-git-") as folder:
        try:
            campaign(Path(folder), asked.repository, asked.most, asked.places)
        except CheckFailed as error:
            say(f"FAILED: {error}")
            return 1
    return 0


def campaign(base: Path, repository: Path, most: int, places: int) -> None:
    git = GitProgram(base / "home")
    with (
        contextlib.closing(Source(repository, base / "scratch")) as source,
        relay_on(base / "relay") as relay,
    ):
        name = import_commits(relay, source, source.commits("--first-parent")[:most])
    served = RestartableRelay(base / "relay")
    try:
        cache = base / "relay" / "git"
        address = f"{served.url}/{name}.git"
        expected = _clone(git, base, address)
        shutil.rmtree(next(cache.glob("*.git")))
        whole = _watch(git, base, address, cache)
        say(f"{expected.count(chr(10))} lines of ids; {whole} bytes are written on the way")
        for place in range(1, places + 1):
            for folder in cache.glob("*.git"):
                shutil.rmtree(folder)
            at = whole * place // (places + 1)
            kills = [at] if place % 2 else [at // 2, at]
            reached = [_kill_at(git, base, address, served, cache, size) for size in kills]
            require(_clone(git, base, address) == expected, f"the ids after a kill at place {place}")
            _await_builder(cache)
            left = [str(path) for path in cache.rglob("*") if path.name.startswith(("tmp", ".tmp"))]
            require(not left, f"nothing is left of what was killed at place {place}: {left}")
            say(f"place {place}: killed with {' and then '.join(reached)}")
    finally:
        served.close()


def _clone(git: GitProgram, base: Path, address: str) -> str:
    shutil.rmtree(base / "clone", ignore_errors=True)
    git("clone", "-q", "--mirror", address, base / "clone")
    return history(git, base / "clone")


def _begin(git: GitProgram, base: Path, address: str) -> subprocess.Popen[bytes]:
    shutil.rmtree(base / "killed", ignore_errors=True)
    words = git.words("clone", "-q", "--mirror", address, base / "killed")
    return subprocess.Popen(words, env=git.environment, stderr=subprocess.DEVNULL)


def _await_builder(cache: Path) -> None:
    """Wait until no process builds packs in the cache or joins packs to larger ones."""
    until = time.monotonic() + PATIENCE
    for folder in cache.glob("*.git"):
        while True:
            with Cache(cache.parent, folder.stem).building() as lock:
                if lock is not None:
                    break
            require(time.monotonic() < until, "building ends")
            time.sleep(0.05)


def _measure_cache(cache: Path) -> int:
    """The size of all files in the cache in bytes: packs, including unfinished ones, and the lists of the
    seals in them."""
    size = 0
    for path in cache.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size if path.is_file() else 0
    return size


def _watch(git: GitProgram, base: Path, address: str, cache: Path) -> int:
    """Clone while the relay builds the cache. Returns the largest size of the cache in bytes."""
    running, most = _begin(git, base, address), 0
    while running.poll() is None:
        most = max(most, _measure_cache(cache))
    require(running.returncode == 0, "a clone ends")
    return most


def _kill_at(
    git: GitProgram, base: Path, address: str, served: RestartableRelay, cache: Path, size: int
) -> str:
    """Begin a clone, kill the relay when the cache has `size` bytes or the clone has ended, and start the
    relay again. Returns a text about the cache at the time of the kill."""
    running = _begin(git, base, address)
    until = time.monotonic() + PATIENCE
    while running.poll() is None and _measure_cache(cache) < size:
        require(time.monotonic() < until, "the relay builds")
    ended = running.poll() is not None
    packs = len([*cache.rglob("*.pack")])
    begun = len([*cache.rglob("tmp*"), *cache.rglob(".tmp*")])
    served.kill()
    running.wait()
    size = _measure_cache(cache)
    served.start()
    return f"{size} bytes, {packs} packs, {begun} files begun{', after the end' if ended else ''}"


if __name__ == "__main__":
    sys.exit(main())
