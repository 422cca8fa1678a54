"""Reads, from a local git repository, the files that both sides of a merge commit changed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from localstore.core.storage.file_kind import kind_of

FILE_MODES = {"100644", "100755"}
CONFLICTS, FAILED = range(1, 128), 128  # exit codes of `git merge-file`


class MergeCase(NamedTuple):
    """A file that both sides of a merge commit changed. `base`, `theirs` and `mine`: its content in the merge
    base, in the first parent and in the second. `committed`: its content in the merge commit, None if the
    commit does not have it."""

    commit: str
    path: str
    base: bytes
    theirs: bytes
    mine: bytes
    committed: bytes | None


class Repository:
    """Reads a git repository with long-running git processes, and merges single files with git."""

    def __init__(self, path: Path) -> None:
        self._git = ["git", "-C", str(path), "-c", "core.quotePath=false"]
        self.name = (path.parent if path.name in ("repo", ".git") else path).name
        self.skipped = 0
        self._trees = self._process("diff-tree", "--stdin", "-r", "--no-renames", "--full-index")
        self._blobs = self._process("cat-file", "--batch")
        self._folder = tempfile.TemporaryDirectory(prefix="svc-merges-")

    def __enter__(self) -> Repository:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._trees, self._blobs):
            process.communicate()
        self._folder.cleanup()

    def cases(self, most: int | None = None) -> Iterator[MergeCase]:
        """Yields the cases of merges of two commits with one merge base, newest first. `most`: how many of
        the newest merges to read; None for all."""
        listed = self._run("rev-list", "--all", "--min-parents=2", "--max-parents=2", "--parents").split("\n")
        for line in filter(None, listed[:most]):
            commit, first, second = line.split()
            bases = self._run("merge-base", "--all", first, second, fails=True).split()
            if len(bases) == 1 and bases[0] not in (first, second):
                yield from self._both_changed(commit, bases[0], first, second)

    def merged_by_git(self, case: MergeCase) -> bytes | None:
        """The file as `git merge-file` merges it; None if a conflict remains."""
        names = [Path(self._folder.name) / name for name in ("theirs", "base", "mine")]
        for name, data in zip(names, (case.theirs, case.base, case.mine), strict=True):
            name.write_bytes(data)
        done = subprocess.run(["git", "merge-file", "-p", "-q", *map(str, names)], capture_output=True)
        if done.returncode >= FAILED:
            raise RuntimeError(f"git merge-file: {done.stderr.decode()}")
        return None if done.returncode in CONFLICTS else done.stdout

    def _both_changed(self, commit: str, base: str, first: str, second: str) -> Iterator[MergeCase]:
        theirs, mine = self._read_changes(base, first), self._read_changes(base, second)
        both = sorted(
            path for path in theirs.keys() & mine.keys() if not _has_removal(theirs[path], mine[path])
        )
        committed = self._read_changes(first, commit) if both else {}
        for path in both:
            old, their_blob = theirs[path]
            ids = [old, their_blob, mine[path][1], committed[path][1] if path in committed else their_blob]
            texts = [self._blob(one) for one in ids]
            known = [text for text in texts[:3] if text is not None and kind_of(text) == "text"]
            if len(known) == 3:
                yield MergeCase(commit, path, known[0], known[1], known[2], texts[3])
            else:
                self.skipped += 1

    def _read_changes(self, old: str, new: str) -> dict[str, tuple[str, str]]:
        """The files of the commit `old` that the commit `new` changed or removed: path → (id of the blob
        before, id after)."""
        pipe_in, pipe_out = self._trees.stdin, self._trees.stdout
        assert pipe_in is not None and pipe_out is not None
        pipe_in.write(f"{self._tree(old)} {self._tree(new)}\nend\n".encode())  # git says `end` again
        pipe_in.flush()
        found = {}
        while (line := pipe_out.readline().decode().rstrip("\n")) != "end":
            if line.startswith(":"):
                about, path = line.split("\t", 1)
                old_mode, new_mode, old_blob, new_blob, _ = about.split()
                if old_mode[1:] in FILE_MODES and (new_mode in FILE_MODES or _is_nothing(new_mode)):
                    found[path] = (old_blob, new_blob)
        return found

    def _tree(self, commit: str) -> str:
        return self._read_object(f"{commit}^{{tree}}")[0]

    def _blob(self, name: str) -> bytes | None:
        """The content of the blob; None if its id stands for a missing file."""
        return None if _is_nothing(name) else self._read_object(name)[1]

    def _read_object(self, name: str) -> tuple[str, bytes]:
        """(id, content) of the git object with this name."""
        pipe_in, pipe_out = self._blobs.stdin, self._blobs.stdout
        assert pipe_in is not None and pipe_out is not None
        pipe_in.write(name.encode() + b"\n")
        pipe_in.flush()
        found, _, size = pipe_out.readline().decode().split()
        return found, pipe_out.read(int(size) + 1)[:-1]

    def _process(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._git, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _run(self, *words: str, fails: bool = False) -> str:
        done = subprocess.run([*self._git, *words], capture_output=True, text=True)
        if done.returncode and not fails:
            raise RuntimeError(f"git {words[0]}: {done.stderr.strip()}")
        return done.stdout


def _is_nothing(name: str) -> bool:
    """Whether this mode or id, as git prints it, stands for a missing file."""
    return set(name) == {"0"}


def _has_removal(*changes: tuple[str, str]) -> bool:
    return any(_is_nothing(after) for _, after in changes)
