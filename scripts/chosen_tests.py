"""Prints the test files that `./scripts/test` runs without arguments, one a line.

python -m scripts.chosen_tests

`./scripts/check` sets the git ref `refs/checked/whole` when all checks have passed. If it exists, the chosen
files are those that the changes since then can reach, the nearest first, as many as fit the time. Without it,
all quick test files are chosen. The files left out are printed on stderr, with the command that runs them.

A test file reaches a source file that it imports, directly or through others. A test that starts programs
(`svc`, the relay, the app) reaches all their sources, but from farther away than any import.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import grimp

from tests import schedule

ROOT = Path(__file__).resolve().parent.parent
MARK = "refs/checked/whole"
OURS = ("svc", "tui", "relay", "localstore", "llm")
BUDGET = 600  # seconds of tests, in several processes: about five minutes on two cores
QUICK = 15  # seconds of a file that is run without a mark
STARTED = 50  # the distance of a test that starts a program to the program's sources
# Modules whose users start programs, and the rooms that these run.
STARTERS = {
    "tests.relay.conftest": ("relay", "localstore"),
    "tests.relay.node_fixture": ("relay", "localstore"),
    "tests.svc.conftest": ("svc", "relay", "localstore"),
    "tests.svc.forks": ("svc", "localstore"),
    "tests.campaign.world": OURS,
    "tests.tui.conftest": ("tui", "svc", "relay", "localstore"),
    "tests.llm.conftest": ("llm", "svc", "localstore"),
}
ALWAYS = ("tests/test_house.py", "tests/test_nouns.py", "tests/test_docs.py", "tests/test_reference.py")
# What is read by a test and not imported: the beginning of a path, and the file of tests.
READ = (
    ("tests/transcripts/", "tests/svc/test_transcripts.py"),
    ("docs/", "tests/test_guide_runs.py"),
    ("README.md", "tests/test_guide_runs.py"),
    ("editors/", "tests/editors/test_neovim.py"),
    ("relay/pages/", "tests/test_pages_run.py"),
    ("relay/migrations/", "tests/relay/run/test_migrations.py"),
    ("relay/migrations/", "tests/relay/run/test_migrations_postgres.py"),
    ("relay/migrations/", "tests/relay/run/test_base_migration.py"),
)


class Choice(NamedTuple):
    """The choice of test files. `files`: those to run, the nearest first. `left`: those that are not run,
    although the changes reach them."""

    files: list[str]
    left: list[str]


def main() -> int:
    changed = changed_files(ROOT)
    if changed is None:
        choice = quick(test_files(ROOT))
        reason = "no whole check has passed in this checkout"
    else:
        choice = choose(changed, distances(changed, test_files(ROOT)))
        reason = f"{len(changed)} files changed since the last whole check"
    sys.stdout.write("".join(f"{file}\n" for file in choice.files))
    rest = (
        f"; {len(choice.left)} slower ones are left out, ./scripts/test --all runs all" if choice.left else ""
    )
    sys.stderr.write(f"{reason}: {len(choice.files)} files of tests{rest}\n")
    return 0


def changed_files(root: Path) -> list[str] | None:
    """The paths that differ from the last commit that passed all checks (`refs/checked/whole`), and files
    that git does not track. Returns None if this ref or git is missing."""
    if _git(root, "rev-parse", "--quiet", "--verify", MARK) is None:
        return None
    differing = _git(root, "diff", "--name-only", "-z", MARK) or ""
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return sorted({name for name in (differing + untracked).split("\0") if name})


def test_files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def quick(files: Iterable[str]) -> Choice:
    """Choose the test files that take little time each. The others are in `left`."""
    chosen: list[str] = []
    slow: list[str] = []
    for file in files:
        (chosen if schedule.seconds(file) <= QUICK else slow).append(file)
    return Choice(chosen, slow)


def choose(changed: Iterable[str], distance: dict[str, int]) -> Choice:
    """Choose the test files nearest to the changes, as many as fit the time for a test run. Changed test
    files are always chosen. `distance`: test file → number of imports between it and the nearest change."""
    spent, files, left = 0, list(ALWAYS), []
    own = set(changed)
    for file in sorted(distance, key=lambda name: (distance[name], schedule.seconds(name), name)):
        if file in ALWAYS:
            continue
        cost = schedule.seconds(file)
        if file in own or spent + cost <= BUDGET:
            files.append(file)
            spent += cost
        else:
            left.append(file)
    return Choice(files, left)


def distances(changed: Iterable[str], tests: Iterable[str]) -> dict[str, int]:
    """Test file → number of imports between it and the nearest changed file. Test files that reach no changed
    file are left out."""
    changed, tests = list(changed), list(tests)
    graph = _Graph(tests)
    nearest: dict[str, int] = {}

    def reach(file: str, steps: int) -> None:
        nearest[file] = min(steps, nearest.get(file, steps))

    for start in {_module(name) for name in changed if name.endswith(".py")}:
        for file, steps in graph.users(start):
            reach(file, steps)
    rooms = {name.partition("/")[0] for name in changed} & set(OURS)
    for starter in (starter for starter, runs in STARTERS.items() if rooms.intersection(runs)):
        for file, _ in graph.users(starter):
            reach(file, STARTED)
    nouns = {Path(name).stem for name in changed if name.startswith(OURS)}
    for file in tests:  # a noun has one name in every layer
        if Path(file).stem.removeprefix("test_") in nouns:
            reach(file, 1)
    for beginning, file in READ:
        if file in tests and any(name.startswith(beginning) for name in changed):
            reach(file, 1)
    if any(_is_of_all(name) for name in changed):
        for file in quick(tests).files:
            reach(file, 2 * STARTED)
    return nearest


def _is_of_all(name: str) -> bool:
    """Whether every test may depend on this file, such as pyproject.toml, a lock file or a shell script."""
    return "/" not in name or (name.startswith("scripts/") and not name.endswith(".py"))


class _Graph:
    """The graph of which module imports which. A conftest counts as imported by the test files in its folder
    and below."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._imports = grimp.build_graph(*OURS, "scripts", "tests", cache_dir=None)
        self._files = {_module(file): file for file in tests}

    def users(self, start: str) -> Iterator[tuple[str, int]]:
        """Yields (test file, number of imports between them) for each test file that imports the module,
        directly or through others."""
        seen, level, steps = {start}, [start], 0
        while level:
            following = []
            for module in level:
                if module in self._files:
                    yield self._files[module], steps
                following += [user for user in self._next(module) if user not in seen]
                seen.update(following)
            level, steps = following, steps + 1

    def _next(self, module: str) -> set[str]:
        users = set()
        if module in self._imports.modules:
            users |= self._imports.find_modules_that_directly_import(module)
        folder, _, name = module.rpartition(".")
        if name == "conftest":
            users |= {test for test in self._files if test.startswith(f"{folder}.")}
        return users


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _git(root: Path, *words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
