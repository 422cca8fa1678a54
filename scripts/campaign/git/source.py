"""Reads a real git repository with git: commits, blobs, and the trees in the form that svc can store."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

FILE, DIRECTORY = b"100644", b"40000"
_NOT_STORED = (b"120000", b"160000")  # symbolic links and submodules


class Child(NamedTuple):
    """An entry of a git tree. `id`: the object's id in hex."""

    mode: bytes
    name: bytes
    id: str


class Commit(NamedTuple):
    id: str
    tree: str
    parents: list[str]


class Source:
    """Reads a git repository. A plain tree is a tree with ordinary files and directories only (modes 100644
    and 40000), as svc can store it. Symbolic links and submodules are left out, and directories that are
    empty without them."""

    def __init__(self, repository: Path, scratch: Path) -> None:
        """`scratch`: path of a new folder, in which git makes the plain trees (trees as svc can store
        them)."""
        self.repository = repository
        subprocess.run(["git", "init", "-q", "--bare", str(scratch)], check=True)
        self._objects = _Pipe("git", "-C", str(repository), "cat-file", "--batch")
        self._makes = _Pipe("git", "-C", str(scratch), "mktree", "-z", "--missing", "--batch")
        self._plain: dict[str, str | None] = {}
        self._trees: dict[str, list[Child]] = {}

    def close(self) -> None:
        self._objects.close()
        self._makes.close()

    def commits(self, *words: str) -> list[Commit]:
        """The commits that `git log` lists with these arguments, parents first."""
        listed = self._git("log", "--topo-order", "--reverse", "--format=%H %T %P", *words, "HEAD")
        rows = (line.split() for line in listed.decode().splitlines())
        return [Commit(row[0], row[1], row[2:]) for row in rows]

    def texts(self, *words: str) -> dict[str, tuple[str, str]]:
        """Id of a commit → (author line, message), for the commits that `git log` lists with these
        arguments."""
        raw = self._git("log", "-z", "--date=raw", "--format=%H%n%an <%ae> %ad%n%B", *words, "HEAD")
        rows = (one.decode("utf-8", "replace").split("\n", 2) for one in raw.split(b"\0") if one)
        return {row[0]: (row[1], row[2].strip()) for row in rows}

    def plain(self, tree: str) -> str | None:
        """The id of the plain tree (ordinary files and directories only) for a tree; None if nothing is
        left."""
        if tree not in self._plain:
            lines = []
            for child in self.tree(tree):
                if child.mode == DIRECTORY:
                    below = self.plain(child.id)
                    lines += [(b"040000 tree", below, child.name)] if below else []
                else:
                    lines.append((b"100644 blob", child.id, child.name))
            records = [b"%s %s\t%s" % (kind, made.encode(), name) for kind, made, name in lines]
            self._plain[tree] = self._make_tree(records) if records else None
        return self._plain[tree]

    def changes(self, old: str | None, new: str) -> dict[str, str | None]:
        """The changes between two trees that `plain` has made: path → id of the new blob, or None for a
        removed file."""
        changed: dict[str, str | None] = {}
        self._compare(old, new, b"", changed)
        return changed

    def blob(self, blob: str) -> bytes:
        return self._objects.object(blob)

    def tree(self, tree: str) -> list[Child]:
        """Those entries of a tree that svc can store: files and directories, but no symbolic links and
        submodules."""
        if tree not in self._trees:
            self._trees[tree] = [
                child for child in _children(self._objects.object(tree)) if child.mode not in _NOT_STORED
            ]
        return self._trees[tree]

    def _compare(
        self, old: str | None, new: str | None, prefix: bytes, changed: dict[str, str | None]
    ) -> None:
        if old == new:
            return
        before, after = ({child.name: child for child in self.tree(one)} if one else {} for one in (old, new))
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            path = prefix + name
            directories = [one.id if one and one.mode == DIRECTORY else None for one in (was, now)]
            if any(directories):
                self._compare(directories[0], directories[1], path + b"/", changed)
            files = [one.id if one and one.mode != DIRECTORY else None for one in (was, now)]
            if files[0] != files[1]:
                changed[path.decode()] = files[1]

    def _make_tree(self, records: list[bytes]) -> str:
        self._makes.input.write(b"".join(record + b"\0" for record in records) + b"\0")
        self._makes.input.flush()
        return self._makes.output.readline().decode().strip()

    def _git(self, *words: str) -> bytes:
        return subprocess.run(
            ["git", "-C", str(self.repository), *words], check=True, stdout=subprocess.PIPE
        ).stdout


class _Pipe:
    """A git process that answers the requests written to its input until this object is closed."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def object(self, object_id: str) -> bytes:
        self.input.write(object_id.encode() + b"\n")
        self.input.flush()
        return self.output.read(int(self.output.readline().split()[2]) + 1)[:-1]

    def close(self) -> None:
        self.input.close()
        self.output.close()
        self._process.wait()


def _children(raw: bytes) -> Iterator[Child]:
    at = 0
    while at < len(raw):
        end = raw.index(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        at = end + 21
        yield Child(mode.lstrip(b"0"), name, raw[end + 1 : at].hex())  # old trees of flask have 040000
