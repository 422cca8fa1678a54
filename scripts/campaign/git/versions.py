"""Tries versions of git with a relay: scripts.campaign.git.versions PROGRAM...

    python -m scripts.campaign.git.versions git /opt/git-2.30.0/bin/git /opt/git-2.55.0/bin/git

Each version is tried as the client. It clones, fetches, clones with a depth and gets the rest later, clones
without blobs and with version 0 of the protocol, asks for a commit by its id, and fetches into a clone with
commits of its own. Then each version is tried as the git that the relay uses. The ids must always be the
same, and `git fsck --strict` of each version must find nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import httpx

from scripts.campaign.git.places import (
    CheckFailed,
    GitProgram,
    RestartableRelay,
    history,
    relay_on,
    require,
    say,
)
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create

SEALS = 120


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="+")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-git-") as folder:
        base = Path(folder)
        owner, name, repo_id = fill(base)
        try:
            ids = set()
            for number, server in enumerate(asked.program):
                shutil.rmtree(base / "relay/git", ignore_errors=True)
                served = RestartableRelay(base / "relay", server)
                try:
                    require_server(f"{served.url}/{name}.git", server)
                    for client in asked.program if number == 0 else [server, asked.program[0]]:
                        with served.client(owner) as http:
                            mine = Repository(http, owner, {"id": repo_id})
                            ids.add(
                                walk(
                                    base, GitProgram(base / "home", client), f"{served.url}/{name}.git", mine
                                )
                            )
                        say(f"{version(client)} reads from {version(server)}")
                finally:
                    served.close()
            require(len(ids) == 1, "all of them see the same first commits")
        except CheckFailed as error:
            say(f"FAILED: {error}")
            return 1
    return 0


def fill(base: Path) -> tuple[Account, str, str]:
    """Fill a relay in `base` with seals on two branches, a merge and a tag. Returns (owner, full name of the
    repository, its id)."""
    with relay_on(base / "relay") as relay:
        owner = relay.account("owner")
        with relay.client(owner, event_hooks={}) as http:
            mine = create(http, owner, "made", visibility="public")
            made = mine.seal(
                *({f"d{n % 7}/f{n % 13}": os.urandom(500), "ü/x y": b"%d" % n} for n in range(SEALS))
            )
            mine.branch("topic", made[SEALS // 2])
            side = mine.seal({"side": b"1"}, branch="topic")
            mine.seal({"side": b"1"}, parents=side)
            body = {"type": "tag", "name": "v1", "head": made[3]}
            require(http.post(f"{mine.url}/refs", json=body).is_success, "a tag is made")
            return owner, "owner/made", mine.id


def walk(base: Path, git: GitProgram, address: str, mine: Repository) -> str:
    """Clone and fetch the repository in all ways that are tried with each version. Returns the id, tree and
    parents of each commit up to the tag, as text."""
    work = Path(tempfile.mkdtemp(dir=base))
    whole, shallow, lazy, old, single = (
        work / name for name in ("whole", "shallow", "lazy", "old", "single")
    )
    git("clone", "-q", address, whole)
    said = history(git, whole)
    merges = git("-C", whole, "rev-list", "--min-parents=2", "--count", "HEAD")
    require(merges == "1\n", "the merge has two parents")
    git("-c", "protocol.version=0", "clone", "-q", address, old)
    require(history(git, old) == said, "version 0 of the protocol gives the same")
    git("clone", "-q", "--depth", "2", "--no-single-branch", address, shallow)
    require(git("-C", shallow, "rev-list", "--count", "--first-parent", "HEAD").strip() == "2", "the depth")
    git("-C", shallow, "fetch", "-q", "--unshallow", "--tags")
    require(history(git, shallow) == said, "what was shallow is whole")
    git("clone", "-q", "--filter=blob:none", address, lazy)
    git("-C", lazy, "log", "-p", "-n", "3")
    git("-C", lazy, "checkout", "-q", "v1")
    require(git("-C", lazy, "status", "--porcelain") == "", "blobs come when they are asked for")
    git("init", "-q", single)
    commit = git("-C", whole, "rev-parse", "HEAD~5").strip()
    git("-C", single, "fetch", "-q", "--depth", "1", address, commit)
    require(git("-C", single, "rev-parse", "FETCH_HEAD").strip() == commit, "a commit by its id")
    for number in range(60):
        git("-C", whole, "commit", "-q", "--allow-empty", "-m", f"own {number}")
    mine.seal({"more": os.urandom(20)})
    git("-C", whole, "fetch", "-q")
    git("-C", old, "pull", "-q")
    require((old / "more").exists(), "what is new is pulled")
    require(
        git("-C", old, "rev-parse", "HEAD") == git("-C", whole, "rev-parse", "origin/main"),
        "both have the same",
    )
    pushed = git.try_command("-C", whole, "push", "origin", "HEAD:refs/heads/new")
    require(b"use svc push" in pushed.stderr, f"a push is refused with a sentence: {pushed.stderr.decode()}")
    ids = git("-C", whole, "log", "--format=%H %T %P", "v1")
    shutil.rmtree(work)
    return ids


def require_server(address: str, program: str) -> None:
    """Raise CheckFailed unless the relay at this address answers with the version of the git program
    `program`."""
    headers = {"git-protocol": "version=2"}
    told = httpx.get(f"{address}/info/refs?service=git-upload-pack", headers=headers, timeout=60.0)
    expected = f"agent=git/{version(program).split()[2]}"
    require(expected in told.text, f"the relay answers by {expected}: {told.text[:200]}")


def version(program: str) -> str:
    return GitProgram(Path(tempfile.gettempdir()), program)("version").strip()


if __name__ == "__main__":
    sys.exit(main())
