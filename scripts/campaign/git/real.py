"""Imports the history of a real git repository, and compares the history with what git reads back.

    python -m scripts.campaign.git.real REPOSITORY [--first-parent] [--most 500]

A relay gets a seal for each commit (with --first-parent, only of the first-parent line). Then git clones it.
Each tree must be the original one as svc can store it (without executable bits, symbolic links and
submodules), each commit must have the parents of its seal, and `git fsck --strict` must find nothing. The ids
must be the same after the relay's cache of git data was deleted, and from a second relay, whose data folder
is a copy from before the first clone. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

from scripts.campaign.git.importing import MAIN, Importer
from scripts.campaign.git.places import CheckFailed, GitProgram, history, relay_on, require, say
from scripts.campaign.git.source import Commit, Source
from tests.relay.conftest import Relay
from tests.relay.histories import create

OWNER, NAME = "importer", "real"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", type=Path)
    parser.add_argument("--first-parent", action="store_true", help="the first-parent line alone")
    parser.add_argument("--most", type=int, help="the oldest commits to import")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-git-") as base:
        try:
            campaign(Path(base), asked.repository, first_parent=asked.first_parent, most=asked.most)
        except CheckFailed as error:
            say(f"FAILED: {error}")
            return 1
    return 0


def campaign(base: Path, repository: Path, *, first_parent: bool, most: int | None) -> None:
    git = GitProgram(base / "home")
    with contextlib.closing(Source(repository, base / "scratch")) as source:
        commits = source.commits(*(["--first-parent"] if first_parent else []))[:most]
        with relay_on(base / "one") as relay:
            began = time.monotonic()
            import_commits(relay, source, commits)
            merges = sum(len(commit.parents) > 1 for commit in commits) if not first_parent else 0
            say(f"{len(commits)} seals, {merges} with two parents, made in {time.monotonic() - began:.0f} s")
        shutil.copytree(base / "one", base / "two")
        with relay_on(base / "one") as one, relay_on(base / "two") as two:
            said = compare(git, base, one, two)
        compare_trees(git, base / "first", source, commits, first_parent=first_parent)
        say(
            f"{len(commits)} trees are those of git; fsck is silent; {said.count(chr(10))} equal lines of ids"
        )


def import_commits(relay: Relay, source: Source, commits: list[Commit]) -> str:
    """Import the commits into a new public repository. Returns its full name."""
    owner = relay.account(OWNER)
    with relay.client(owner, event_hooks={}) as http:
        made = create(http, owner, NAME, visibility="public", kind="model")
        main = {commit.id for commit in source.commits("--first-parent")}
        Importer(source, made).run(commits, source.texts(), main)
    return f"{OWNER}/{NAME}"


def compare(git: GitProgram, base: Path, one: Relay, two: Relay) -> str:
    """Clone from both relays, and again after the cache was deleted. Returns the refs and ids as text. Raises
    CheckFailed unless they are the same each time."""
    clones = {"first": one, "second": two}
    said = []
    for name, relay in clones.items():
        git("clone", "-q", f"{relay.url}/{OWNER}/{NAME}.git", base / name)
        said.append(history(git, base / name))
    caches = list((base / "one" / "git").glob("*.git"))
    require(len(caches) == 1, "there is one cache")
    shutil.rmtree(caches[0])
    git("clone", "-q", f"{one.url}/{OWNER}/{NAME}.git", base / "third")
    said.append(history(git, base / "third"))
    require(said[0] == said[1], "the ids from two relays are the same")
    require(said[0] == said[2], "the ids after the cache was deleted are the same")
    return said[0]


def compare_trees(
    git: GitProgram, clone: Path, source: Source, commits: list[Commit], *, first_parent: bool
) -> None:
    """Compare the commits in the clone with the original ones, the newest first. Each must have the tree of
    the original, as svc can store it (`Source.plain`), and as many parents. Each parent must have been made
    from a parent of the original."""
    listed = git("-C", clone, "log", "--all", "--format=%H %T %P").splitlines()
    made = {row[0]: Commit(row[0], row[1], row[2:]) for row in (line.split() for line in listed)}
    known = {commit.id: commit for commit in commits}
    main = {commit.id for commit in source.commits("--first-parent")}
    last = [commit for commit in commits if commit.id in main][-1]
    commit_of = {last.id: git("-C", clone, "rev-parse", f"refs/remotes/origin/{MAIN}").strip()}
    stack = [last.id]
    while stack:
        original = known[stack.pop()]
        ours = made[commit_of[original.id]]
        plain = source.plain(original.tree)
        require(ours.tree == plain, f"the tree of {original.id} is {ours.tree}, and that of git {plain}")
        parents = [parent for parent in original.parents if parent in known]
        parents = parents[:1] if first_parent else parents
        require(len(ours.parents) == len(parents), f"{original.id} has {len(parents)} parents")
        for parent, original_id in zip(ours.parents, parents, strict=True):
            if original_id not in commit_of:
                commit_of[original_id] = parent
                stack.append(original_id)
            require(commit_of[original_id] == parent, f"the parents of {original.id} are in order")
    require(len(commit_of) == len(commits), "each commit was found")
    require(set(commit_of.values()) == made.keys(), "each commit stands for one of git")
    if len(made) < len(commits):  # they differ in the committer alone
        say(f"{len(commits) - len(made)} seals are equal to others in all that git has, and the same commits")


if __name__ == "__main__":
    sys.exit(main())
