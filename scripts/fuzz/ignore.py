"""Compares svc's ignore engine with `git check-ignore` on random trees and patterns.

    python scripts/fuzz/ignore.py --seed 1 --cases 5000

One case is a small tree with ignore files of the names .svcignore, .stignore and .gitignore in several
folders. git reads only the files of one name at a time, and reports for each path whether it is ignored and
by which line. This script combines the three results by svc's rule, written here a second time in a few
lines. It prints every difference, and exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from localstore.core.ignore.matcher import BUILT_IN, DEFAULTS, SOURCES, Scope, root

NAMES = (
    *(
        "a",
        "b",
        "ab",
        "ba",
        "aab",
        "foo",
        "foobar",
        "bar",
        "x.c",
        "a.c",
        "b.log",
        "foo.log",
        "-",
        "a-b",
        "a]b",
    ),
    *(
        "é",
        "日",
        "a b",
        "a ",
        "#a",
        "!a",
        "[a]",
        "a*",
        "A",
        "Foo",
        "0",
        "a0",
        "_",
        "^",
        "a\\b",
        "(?i)a",
        "//",
    ),
)
USUAL = ("dist", "node_modules", "x.pyc", "y.swp", "n~", "q.egg-info", "build")
ATOMS = (
    *NAMES,
    *(
        "*",
        "*",
        "*",
        "**",
        "***",
        "?",
        "??",
        "/",
        "/",
        "/",
        "\\*",
        "\\?",
        "\\/",
        "\\a",
        "\\",
        ".",
        "*.c",
        "*.log",
    ),
    *(
        "[ab]",
        "[!ab]",
        "[^a]",
        "[a-f]",
        "[]a]",
        "[!]a]",
        "[a-]",
        "[-a]",
        "[\\]]",
        "[a-\\c]",
        "[a/b]",
        "[z-a]",
    ),
    *(
        "[[:alpha:]]",
        "[[:upper:]x]",
        "[![:digit:]]",
        "[[:space:]]",
        "[[:punct:]]",
        "[[:bad:]]",
        "[[:]",
        "[",
        "[a",
    ),
    *("**/", "/**", "/**/", "*/", "/*", "é", " ", "\\ ", "[é]", "a-[:", "[a-[:digit:]]", "[\\"),
)


class Case(NamedTuple):
    """A random tree. `entries`: path → whether it is a directory. `files`: folder → its ignore files, as name
    → text."""

    entries: dict[str, bool]
    files: dict[str, dict[str, str]]


class Judged(NamedTuple):
    """git's verdict on a path: the deciding file and line, and whether the pattern is negated. If no pattern
    matches, file and line are "" and 0."""

    file: str
    line: int
    negated: bool


def make_case(rng: random.Random) -> Case:
    entries: dict[str, bool] = {}
    folders = [""]
    usual = rng.choice((0.0, 0.0, 0.25))
    for _ in range(rng.randint(4, 18)):
        folder = rng.choice(folders)
        name = rng.choice(USUAL if rng.random() < usual else NAMES).replace("/", "_")
        path = f"{folder}/{name}" if folder else name
        if path in entries:
            continue
        entries[path] = rng.random() < 0.5
        if entries[path]:
            folders.append(path)
    files: dict[str, dict[str, str]] = {}
    for folder in {"", *rng.sample(folders, min(2, len(folders)))}:
        chosen = [name for name in SOURCES if rng.random() < 0.6]
        files[folder] = {name: make_file(rng, list(entries)) for name in chosen}
    return Case(entries, files)


def make_file(rng: random.Random, paths: list[str]) -> str:
    lines = [make_line(rng, paths) for _ in range(rng.randint(1, 6))]
    text = rng.choice(("\n", "\n", "\n", "\r\n")).join(lines)
    return ("\ufeff" if rng.random() < 0.05 else "") + text + rng.choice(("", "\n"))


def make_line(rng: random.Random, paths: list[str]) -> str:
    kind = rng.random()
    if kind < 0.35:
        body = "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 4)))
    elif kind < 0.5:
        body = "".join(rng.choice("ab*?/[]!-.\\ ") for _ in range(rng.randint(1, 9)))
    else:
        body = mutate_path(rng, rng.choice(paths))
    start = rng.choice(("", "", "", "", "!", "!", "/", "!/", "#", "\\#", "\\!"))
    return start + body + rng.choice(("", "", "", "/", " ", "\\ ", "/ ", "\\"))


def mutate_path(rng: random.Random, path: str) -> str:
    """A random pattern that resembles an existing path, so that many patterns match."""
    parts = path.split("/")
    parts = parts[rng.randrange(len(parts)) :]
    for at, part in enumerate(parts):
        if rng.random() < 0.4:
            cut = rng.randint(0, len(part))
            parts[at] = rng.choice(("*", "**", "?" * len(part), part[:cut] + "*", "*" + part[cut:], "[!z]*"))
    return "/".join(parts)


def judge(repository: Path, cases: list[Case]) -> dict[tuple[int, str, str], Judged]:
    """Ask git whether it ignores each path of the cases. It is asked once for each kind of ignore file, such
    as .stignore, with the files of this kind renamed to `.gitignore`. Returns (number of the case, kind of
    ignore file, path) → git's verdict."""
    asked: dict[str, tuple[int, str, str]] = {}
    for number, case in enumerate(cases):
        for source in SOURCES:
            top = f"{number}{source}"
            for path, is_dir in {"": True, **case.entries}.items():
                target = repository / top / path
                if is_dir:
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.touch()
                if path:
                    asked[f"{top}/{path}"] = (number, source, path)
            for folder, texts in case.files.items():
                if source in texts:
                    (repository / top / folder / ".gitignore").write_bytes(texts[source].encode())
    answer = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"],
        input="\0".join(asked).encode(),
        stdout=subprocess.PIPE,
        env=git_environment(),
        check=False,
    ).stdout.decode()
    fields = iter(answer.split("\0")[:-1])
    return {
        asked[path]: Judged(file, int(line or 0), pattern.startswith("!"))
        for file, line, pattern, path in zip(fields, fields, fields, fields, strict=True)
    }


def git_environment() -> dict[str, str]:
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def walk(case: Case) -> Iterator[tuple[Scope, str, str, bool]]:
    """Yields (ignore rules of the folder, path, name, whether it is a directory) of every entry of the tree,
    including entries in ignored folders."""
    scopes = {"": root(case.files.get("", {}))}
    for path, is_dir in case.entries.items():
        folder, _, name = path.rpartition("/")
        yield scopes[folder], path, name, is_dir
        if is_dir:
            scopes[path] = scopes[folder].enter(name, case.files.get(path, {}))


def compare(cases: list[Case], repository: Path) -> list[str]:
    """Compare svc's ignore engine with git on these cases. Returns the differences in words; [] if they
    agree."""
    subprocess.run(["git", "init", "-q", str(repository)], env=git_environment(), check=True)
    said = judge(repository, cases)
    problems: list[str] = []
    for number, case in enumerate(cases):
        problems += compare_sources(number, case, said)
        problems += compare_combined(number, case, said)
    return problems


def compare_sources(number: int, case: Case, said: dict[tuple[int, str, str], Judged]) -> Iterator[str]:
    if any(name in USUAL for path in case.entries for name in path.split("/")):
        return  # the built-in defaults have a say there
    for source in SOURCES:
        # Syncthing's own spellings mean something in .stignore only, so each text is read as .gitignore.
        texts = {folder: {".gitignore": t[source]} for folder, t in case.files.items() if source in t}
        for scope, path, name, is_dir in walk(Case(case.entries, texts)):
            git = said[number, source, path]
            ours = scope.explain(name, is_dir)
            theirs = bool(git.file) and not git.negated
            same_line = not theirs or (ours is not None and ours.line == git.line)
            if (ours is not None and ours.ignored) != theirs or not same_line:
                yield f"{path!r} (dir {is_dir}) in {texts}: git {git}, ours {ours}"


def compare_combined(number: int, case: Case, said: dict[tuple[int, str, str], Judged]) -> Iterator[str]:
    expected: dict[str, bool] = {}
    files = {f: {k: v for k, v in t.items() if k != ".stignore"} for f, t in case.files.items()}
    verdicts: dict[tuple[str, str], bool | None] = {}
    built_in = {name.rstrip("/") for name in DEFAULTS if "*" not in name and name.endswith("/")}
    for scope, path, name, is_dir in walk(Case(case.entries, files)):
        folder = path.rpartition("/")[0]
        if expected.get(folder, False) and folder in files and files[folder]:
            return  # ignore files inside an ignored folder have no say with us; git alone cannot tell
        for source in (".svcignore", ".gitignore"):
            git = said[number, source, path]
            own = None if not git.file else not git.negated
            above = verdicts.get((folder, source))
            verdicts[path, source] = True if above else above if own is None else own
        default = (is_dir and name in built_in) or name.endswith((".pyc", ".swp", "~"))
        default = default or (is_dir and name.endswith(".egg-info"))
        verdicts[path, BUILT_IN] = True if default or verdicts.get((folder, BUILT_IN)) else None
        found = (verdicts[path, s] for s in (".svcignore", ".gitignore", BUILT_IN))
        expected[path] = next((v for v in found if v is not None), False)
        if scope.is_ignored(name, is_dir) != expected[path]:
            ours = scope.explain(name, is_dir)
            yield f"{path!r} (dir {is_dir}) in {files}: expected {expected[path]}, {ours}"
        if is_dir and scope.prune(name) and not expected[path]:
            yield f"{path!r} pruned although kept, in {files}"
        if not expected[path] and pruned_above(case, files, path):
            yield f"{path!r} lost to pruning, in {files}"


def pruned_above(case: Case, files: dict[str, dict[str, str]], path: str) -> bool:
    scope = root(files.get("", {}))
    folder = ""
    for name in path.split("/")[:-1]:
        if scope.prune(name):
            return True
        folder = f"{folder}/{name}" if folder else name
        scope = scope.enter(name, files.get(folder, {}))
    return False


def campaign(seed: int, cases: int, batch: int = 250) -> list[str]:
    """Compare svc's ignore engine with git on random cases, in batches that each have their own git
    repository. Returns the differences in words."""
    rng = random.Random(seed)
    problems: list[str] = []
    for start in range(0, cases, batch):
        with tempfile.TemporaryDirectory() as folder:
            made = [make_case(rng) for _ in range(min(batch, cases - start))]
            problems += compare(made, Path(folder))
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=5000)
    args = parser.parse_args()
    problems = campaign(args.seed, args.cases)
    for problem in problems[:50]:
        print(problem)
    print(f"{args.cases} cases, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
