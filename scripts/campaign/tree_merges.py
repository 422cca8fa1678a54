"""Merges random histories with git and with `localstore.core.merge`: files and conflicts must be the same.

    python -m scripts.campaign.tree_merges --histories 500 --seed 1
    python -m scripts.campaign.tree_merges --histories 500 --seed 1 --moves

Each history is a git repository with two branches that edit, add, delete and replace files, and now and then
merge each other. With --moves they also move files, often with edits. git is told not to follow moved
directories, because svc does not. With --moves a new file shares no line with other files, and texts end with
a newline, because git before 2.44 does not count a last line without one.

Histories with several merge bases are counted separately, because there svc may find a conflict where git
finds none, and the reverse. If both merge such a history without a conflict, the files must be the same,
except with --moves.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from localstore.core.encoding import digest
from localstore.core.merge.base import Node, relation
from localstore.core.merge.moves import Moves, searches
from localstore.core.merge.three_way import MergedTree, agreed, finish, merged_texts, plan
from localstore.core.storage.file_kind import kind_of
from localstore.core.tree.directory import TreeEntry
from localstore.core.tree.read import Change

WORDS = ["a", "b", "c", "", "}", "{", "x = 1", "return", "    pass", "\tif", "end", "import os", "- item"]
Files = dict[str, bytes]


class Outcome(msgspec.Struct, frozen=True):
    """The result of a merge. `conflicts`: the paths with conflicts. `files`: path → bytes; None if there are
    conflicts."""

    conflicts: frozenset[str]
    files: Files | None


class History:
    """A history, in a git repository and in memory. `files`: id of a seal → its files."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.files: dict[str, Files] = {}
        self.nodes: dict[str, Node] = {}
        self.moved = 0
        self.git("init", "-q", ".")

    def git(self, *words: str, data: bytes | None = None, codes: tuple[int, ...] = (0,)) -> bytes:
        done = subprocess.run(["git", *words], cwd=self.folder, input=data, capture_output=True, check=False)
        if done.returncode not in codes:
            raise RuntimeError(f"git {words}: {done.stderr.decode()}")
        return done.stdout

    def commit(self, files: Files, parents: list[str]) -> str:
        stream = [b"commit refs/heads/work\ncommitter a <a@b> %d +0000\ndata 1\nx\n" % (len(self.files) + 1)]
        stream += [b"from %s\n" % one.encode() for one in parents[:1]]
        stream += [b"merge %s\n" % one.encode() for one in parents[1:]]
        stream.append(b"deleteall\n")
        for path, data in files.items():
            stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
        reset = b"" if parents else b"reset refs/heads/work\n"
        self.git("fast-import", "--quiet", "--force", data=reset + b"".join(stream))
        made = self.git("rev-parse", "refs/heads/work").decode().strip()
        self.files[made] = files
        self.nodes[made] = Node(1 + max((self.nodes[one].rank for one in parents), default=0), parents)
        return made

    def by_git(self, ours: str, theirs: str) -> Outcome:
        words = (
            "-c",
            "merge.directoryRenames=false",
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        )
        lines = self.git(*words, ours, theirs, codes=(0, 1)).decode().split("\0")
        names = {name.partition("~")[0] for name in lines[1:] if name}
        if names:
            return Outcome(frozenset(names), None)
        return Outcome(frozenset(), self._tree(lines[0].strip()))

    def _tree(self, name: str) -> Files:
        listed = self.git("ls-tree", "-r", "-z", name).decode().split("\0")
        rows = [row.split("\t") for row in listed if row]
        return {path: self.git("cat-file", "blob", about.split()[2]) for about, path in rows}

    def bases(self, ours: str, theirs: str) -> list[str]:
        walk = relation(ours, theirs)
        wanted = next(walk)
        try:
            while True:
                wanted = walk.send({one: self.nodes[one] for one in wanted})
        except StopIteration as end:
            return list(end.value.bases)

    def by_svc(self, ours: str, theirs: str) -> Outcome:
        merged = agreed([self._over(base, ours, theirs) for base in self.bases(ours, theirs)])
        if merged.conflicts:
            return Outcome(frozenset(merged.conflicts), None)
        known = {
            digest(data): data for files in self.files.values() for data in files.values()
        } | merged.texts
        result = dict(self.files[ours])
        for path, entry in merged.changes.items():
            result.pop(path, None)
            if entry is not None:
                result[path] = known[entry.digest]
        return Outcome(frozenset(), result)

    def _over(self, base: str, ours: str, theirs: str) -> MergedTree:
        mine, other = (_changes(self.files[base], self.files[side]) for side in (ours, theirs))
        contents = {digest(data): data for one in (base, ours, theirs) for data in self.files[one].values()}
        moves = Moves(*(search.pairs(contents) for search in searches(mine, other)))
        self.moved += len(moves.ours) + len(moves.theirs)
        planned = plan(mine, other, moves)
        return finish(planned, dict(merged_texts(planned, contents)))


def _entry(data: bytes | None) -> TreeEntry | None:
    if data is None:
        return None
    return TreeEntry("text" if kind_of(data) == "text" else "blob", digest(data), len(data))


def _changes(base: Mapping[str, bytes], side: Mapping[str, bytes]) -> dict[str, Change]:
    pairs = {path: (_entry(base.get(path)), _entry(side.get(path))) for path in {*base, *side}}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def _line(rng: random.Random) -> str:
    return rng.choice(WORDS) if rng.random() < 0.6 else f"line {rng.randrange(200)}"


def _text(rng: random.Random) -> bytes:
    """A random text. None of its lines is in another file."""
    own = f"  # {rng.randrange(1 << 32):08x}"
    lines = [_line(rng) + own for _ in range(rng.choice([0, 1, 5, 20, 60]))]
    return ("\n".join(lines) + rng.choice(["\n", "\n", "\n", ""])).encode() if lines else b""


def _edit_text(rng: random.Random, data: bytes) -> bytes:
    lines = data.decode().split("\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines) + 1)
        how = rng.randrange(4)
        if how == 0:
            lines[at:at] = [_line(rng) for _ in range(rng.randint(1, 4))]
        elif how == 1:
            del lines[at : at + rng.randint(1, 4)]
        elif how == 2:
            lines[at : at + 1] = [_line(rng)]
        else:
            block = lines[at : at + 3]
            del lines[at : at + 3]
            to = rng.randrange(len(lines) + 1)
            lines[to:to] = block
    return "\n".join(lines).encode()


def _end_with_newline(data: bytes) -> bytes:
    """The text with a newline at its end. Binary data and empty data are returned unchanged."""
    return data if not data or b"\0" in data or data.endswith(b"\n") else data + b"\n"


def _move(rng: random.Random, files: Files) -> None:
    """Move a random file to another path, with its old name or a new one. Perhaps change some of its lines
    too."""
    old = rng.choice(sorted(files))
    data, name = files.pop(old), old.rpartition("/")[2]
    if b"\0" not in data and data and rng.random() < 0.5:
        data = _end_with_newline(_edit_text(rng, data))
    names = [f"dir/{name}", f"lib/{name}", f"moved{rng.randrange(4)}", f"dir/sub/moved{rng.randrange(4)}"]
    _put(files, rng.choice(names), data)


def _edit_files(rng: random.Random, files: Files, moves: bool = False) -> Files:
    files = dict(files)
    for _ in range(rng.randint(1, 4)):
        paths = sorted(files)
        if moves and paths and rng.random() < 0.35:
            _move(rng, files)
            continue
        roll = rng.random()
        if roll < 0.65 and paths:
            path = rng.choice(paths)
            if b"\0" in files[path]:
                files[path] = bytes([0, rng.randrange(256)])
            else:
                files[path] = _edit_text(rng, files[path])
        elif roll < 0.75 and paths:
            del files[rng.choice(paths)]
        elif roll < 0.8 and paths:
            path = rng.choice(paths)  # a file becomes a directory, or a directory a file
            _put(files, f"{path}/in" if rng.random() < 0.5 else path.partition("/")[0], _text(rng))
        else:
            name = rng.choice(["new", "dir/new", "dir/sub/x", "lib/y"]) + str(rng.randrange(4))
            _put(files, name, b"\0bin" if rng.random() < 0.1 else _text(rng))
    return files


def _put(files: Files, path: str, data: bytes) -> None:
    for other in list(files):
        if other.startswith(path + "/") or path.startswith(other + "/"):
            del files[other]
    files[path] = data


def history(folder: Path, seed: int, moves: bool = False) -> tuple[History, str, str]:
    """Make a history. Returns (history, the two seals to merge)."""
    rng = random.Random(seed)
    made = History(folder, rng)
    start = {f"file{n}.txt": _text(rng) for n in range(rng.randint(1, 5))} | {"dir/a": _text(rng)}
    if moves:
        start = {path: _end_with_newline(data) for path, data in start.items()}
    first = made.commit(start, [])
    heads = [first, first]
    for _ in range(rng.randint(2, 9)):
        side = rng.randrange(2)
        if rng.random() < 0.2 and heads[0] != heads[1]:
            done = made.by_git(heads[side], heads[1 - side])
            if done.files is not None:
                heads[side] = made.commit(done.files, [heads[side], heads[1 - side]])
            continue
        files = _edit_files(rng, made.files[heads[side]], moves)
        if moves:
            files = {path: _end_with_newline(data) for path, data in files.items()}
        heads[side] = made.commit(files, [heads[side]])
    return made, heads[0], heads[1]


def check(folder: Path, seed: int, moves: bool = False) -> tuple[str, str]:
    """Merge one history with git and svc. Returns (verdict, what differs or "").

    Verdicts for one merge base: `clean` or `conflict` if git and svc have the same result, otherwise `wrong`.
    Verdicts for several merge bases: `crossed` if both have the same result, `stricter` if only one of the
    two has conflicts, `otherwise` if the files differ. `otherwise` is allowed only with `moves`. If a branch
    moved files, " moved" is added to any verdict except `wrong`."""
    made, ours, theirs = history(folder, seed, moves)
    verdict, why = _compare_merges(made, ours, theirs, moves)
    return verdict + (" moved" if made.moved and verdict != "wrong" else ""), why


def _compare_merges(made: History, ours: str, theirs: str, moves: bool) -> tuple[str, str]:
    git, svc = made.by_git(ours, theirs), made.by_svc(ours, theirs)
    bases = made.bases(ours, theirs)
    expected = made.git("merge-base", "--all", ours, theirs).decode().split()
    if sorted(bases) != sorted(expected):
        return "wrong", f"bases {bases} instead of {expected}"
    if len(bases) > 1:
        if git == svc:
            return "crossed", ""
        if git.files is None or svc.files is None:
            return "stricter", ""
        return ("otherwise" if moves else "wrong"), "crossed, other files"
    if git.conflicts != svc.conflicts:
        return "wrong", f"conflicts {sorted(svc.conflicts)} instead of {sorted(git.conflicts)}"
    if git != svc:
        return "wrong", "the same conflicts, other files"
    return ("conflict" if git.conflicts else "clean"), ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moves", action="store_true")
    asked = parser.parse_args()
    counts: dict[str, int] = {}
    for seed in range(asked.seed, asked.seed + asked.histories):
        with tempfile.TemporaryDirectory(prefix="svc-merges-") as folder:
            verdict, why = check(Path(folder), seed, asked.moves)
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict == "wrong":
            print(f"seed {seed}: {why}")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if counts.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
