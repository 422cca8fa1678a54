"""Fills a relay's disk with the account of a stranger, and checks whether others can still work.

    python -m scripts.attack.disk [--disk 256] [--seconds 60]

A relay starts on a free port of the loopback address. Its data folder is on a small file system of its own
(tmpfs in a mount namespace). Where this machine does not allow that, it is on the existing disk, with a
reserve just below the free space. Attackers upload random bytes to several repositories and accounts until
they are refused, first because of their quota, then because of the reserve. Then another account reads, signs
in and deletes. The exit code is 1 if an upload fails in any other way, if the other account cannot work, or
if `/readyz` is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from localstore.core.encoding import digest
from localstore.core.model.limits import MIB
from localstore.core.storage.pack import write_packs
from scripts.attack.memory import sign_in
from scripts.fuzz.api import requests_of, serving
from tests.relay.auth.people import Device
from tests.relay.histories import Repository, create

UPLOAD = 4 * MIB
INSIDE = "ATTACK_DISK_INSIDE"


def fill(repo: Repository, until: float) -> Counter[str]:
    """Upload random bytes until the relay has refused five uploads, or until the time `until`
    (`time.monotonic`). Returns how often each answer came, by status and error code."""
    seen: Counter[str] = Counter()
    refused = 0
    while refused < 5 and time.monotonic() < until:
        data = os.urandom(UPLOAD)
        (pack,) = write_packs([(digest(data), data, False)])
        answer = repo.http.post(
            f"{repo.url}/packs", content=b"".join(pack.parts()), extensions={"blake3": digest(pack.toc)}
        )
        code = "stored" if answer.status_code == 201 else f"{answer.status_code} {_code(answer)}"
        seen[code] += 1
        refused += answer.status_code != 201
    return seen


def _code(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("code"))
    except ValueError:
        return f"no problem document: {answer.content[:100]!r} with {dict(answer.headers)}"


def others(url: str, repo: Repository, seal: str, doomed: Repository) -> list[str]:
    """Read a file of `repo` as of `seal`, sign in as its owner, delete the repository `doomed`, and ask
    `/readyz`. Returns the names of the steps that failed."""
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as anybody:
        done = {
            "read": anybody.get(f"{repo.url}/raw/{seal}/a.txt").content == b"one\n",
            "sign in": Device(url, repo.owner.key).sign_in(str(repo.owner.handle)).status_code == 201,
            "delete": doomed.http.delete(doomed.url).is_success,
            "readiness": anybody.get("/readyz").status_code == 200,
        }
    return [name for name, well in done.items() if not well]


def attack(url: str, seconds: float, quota: int, folder: Path) -> bool:
    until = time.monotonic() + seconds
    victim = sign_in(url)
    with requests_of(victim, url) as http:
        mine, doomed = (create(http, victim, name, visibility="public") for name in ("mine", "doomed"))
        (seal,) = mine.seal({"a.txt": b"one\n"})
        seen: Counter[str] = Counter()
        for _ in range(8):
            attacker = sign_in(url)
            with requests_of(attacker, url) as theirs:
                targets = [create(theirs, attacker, f"r{n}") for n in range(3)]
                with ThreadPoolExecutor(3) as threads:
                    found = sum(threads.map(lambda one: fill(one, until), targets), Counter[str]())
            seen += found
            print(f"  an account of {quota // MIB} MiB: {dict(found)}")
            if any(code.startswith("507 no_space") for code in found):
                break
        left = shutil.disk_usage(folder).free
        space = httpx.get(f"{url}/readyz", trust_env=False).json()["checks"].get("space")
        wrong = others(url, mine, seal, doomed)
    strange = [code for code in seen if code not in ("stored", "507 quota_exceeded", "507 no_space")]
    print(f"uploads: {dict(seen)}; {left // MIB} MiB left, readiness says space {space}")
    print(f"others cannot: {', '.join(wrong) or 'nothing is refused to them'}")
    return not wrong and not strange and seen["507 no_space"] > 0 and space == "low"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--disk", type=int, default=256, help="MiB of the small file system")
    parser.add_argument("--seconds", type=float, default=60, help="of uploading at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if INSIDE not in os.environ and _mounts():
            mounted = 'mount -t tmpfs -o size="$0" none "$1" && shift && exec "$@"'
            again = [sys.executable, "-m", "scripts.attack.disk", *sys.argv[1:]]
            command = ["unshare", "-m", "sh", "-c", mounted, f"{asked.disk}m", name, *again]
            return subprocess.run(command, env={**os.environ, INSIDE: name}, check=False).returncode
        folder = Path(os.environ.get(INSIDE, name))
        free = shutil.disk_usage(folder).free
        quota = asked.disk * MIB // 3
        reserve = asked.disk * MIB // 4 if INSIDE in os.environ else max(0, free - asked.disk * MIB * 3 // 4)
        variables = {"TR_QUOTA_BYTES": str(quota), "TR_RESERVE_BYTES": str(reserve), "TR_RATE_LIMITS": "off"}
        with serving(folder, **variables) as served:
            good = attack(served.url, asked.seconds, quota, folder)
    print("every limit holds" if good else "a limit is BROKEN")
    return 0 if good else 1


def _mounts() -> bool:
    """Whether this machine allows this process to mount a file system in a namespace."""
    if not shutil.which("unshare"):
        return False
    with tempfile.TemporaryDirectory() as name:
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", name]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
