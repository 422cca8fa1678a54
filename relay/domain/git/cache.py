"""The bare git repositories that git reads: one folder for each repository below `git/` of the data folder.

    REPO.git/           HEAD, config, packed-refs, objects/pack/ as git has them
    REPO.git/seals      id, commit and tree of each seal whose objects are all in the packs
    REPO.git/current    a digest of the refs in packed-refs
    REPO.git/joined     the names of packs that were joined from smaller ones
    REPO.git/read       changed with each request of a reader
    REPO.lock           held by the process that builds
    REPO.readers        held as a shared lock, once for each reader

All of it can be deleted at any time; a new build from the seals gives the same ids. A file is changed by
renaming a complete new file over it, so that a killed process leaves either the old or the new state. Locks
are locks of the operating system, so they hold between processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from localstore.core.git.objects import ID_BYTES
from localstore.core.git.pack import PackEntry, pack_header, pack_index

FOLDER = "git"
SEAL_BYTES = 32
_RECORD = SEAL_BYTES + 2 * ID_BYTES
_PIECE = 1 << 20
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n"
_REFUSAL_SECONDS = 24 * 3600
_FAULT_SECONDS = 60.0


class Exported(NamedTuple):
    """The git commit that a seal was exported as, and the tree of that commit, as raw ids."""

    commit: bytes
    tree: bytes


class Ref(NamedTuple):
    """A branch or tag, and the id of its seal."""

    type: str
    name: str
    head: str

    @property
    def full_name(self) -> str:
        return f"refs/{'tags' if self.type == 'tag' else 'heads'}/{self.name}"


def without_clashes(refs: Sequence[Ref], default_branch: str) -> list[Ref]:
    """The refs that git can have together. If both `a` and `a/b` exist, `a/b` is left out, or `a` if `a/b` is
    the default branch. A clone with both would fail as a whole."""
    first = Ref("branch", default_branch, "").full_name
    names: set[str] = set()
    folders: set[str] = set()
    for name in sorted((ref.full_name for ref in refs), key=lambda name: (name != first, name)):
        above = {name[:at] for at, char in enumerate(name) if char == "/"}
        if name not in folders and not above & names:
            names.add(name)
            folders |= above
    return [ref for ref in refs if ref.full_name in names]


def fingerprint_of(default_branch: str, refs: Iterable[Ref]) -> str:
    """A digest of the refs of a repository."""
    lines = [default_branch, *(f"{ref.full_name} {ref.head}" for ref in refs)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Cache:
    """The bare git repository of one repository. Methods that write must be called within `building`."""

    def __init__(self, data: Path, repo_id: str) -> None:
        self.root, self.repo_id = data / FOLDER, repo_id
        self.folder = self.root / f"{repo_id}.git"
        self.packs = self.folder / "objects" / "pack"

    # --- asked by readers

    def exists(self) -> bool:
        return self.folder.is_dir()

    def read_fingerprint(self) -> str | None:
        """Read the fingerprint (a digest) of the refs that the cache has. None if the cache was never
        built."""
        return _read_text(self.folder / "current")

    def refusal(self) -> str | None:
        """Read why this bare repository cannot be built. Returns None if no reason was recorded, or if the
        recorded reason is older than a day."""
        path = self.root / f"{self.repo_id}.refused"
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime > time.time() - _REFUSAL_SECONDS:
                return _read_text(path)
        return None

    def read_fault(self) -> str | None:
        """Read which fault stopped the last build. Returns None if there was none, or if the fault is older
        than a minute, because what was lost may be back."""
        path = self.root / f"{self.repo_id}.fault"
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime > time.time() - _FAULT_SECONDS:
                return _read_text(path)
        return None

    def record_fault(self, why: str | None) -> None:
        """Record which loss of stored bytes stopped a build. None: none did. The newest record counts, so
        this needs no lock: readers look at it only if the cache is not current."""
        path = self.root / f"{self.repo_id}.fault"
        if why is not None:
            _replace(path, why.encode())
        else:
            path.unlink(missing_ok=True)

    def mark_read(self) -> None:
        """Record that the cache is read now. The caches that were read least recently are deleted first."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.folder / "read")

    def hold(self) -> int:
        """Open a descriptor that keeps the cache from being deleted. The cache is kept until the descriptor
        is closed, in this process and in all processes that inherit it."""
        return _lock(self.root / f"{self.repo_id}.readers", fcntl.LOCK_SH)

    # --- building

    @contextlib.contextmanager
    def building(self) -> Iterator[int | None]:
        """A context in which the caller holds the builder's lock. Yields the descriptor of the lock, or None
        if another process holds it.

        git processes inherit the descriptor. So a git process that survives its relay still prevents another
        build.
        """
        self.root.mkdir(mode=0o700, exist_ok=True)
        try:
            descriptor = _lock(self.root / f"{self.repo_id}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def prepare(self) -> None:
        """Make an empty bare repository unless there is one, and remove the remains of a killed process."""
        self.packs.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "refs").mkdir(exist_ok=True)
        if not (self.folder / "HEAD").exists():
            _replace(self.folder / "config", _CONFIG)
            _replace(self.folder / "read", b"")
            _replace(self.folder / "HEAD", b"ref: refs/heads/main\n")
        for folder in (self.folder, self.packs):
            for path in [*folder.glob("tmp*"), *folder.glob(".tmp*")]:
                path.unlink(missing_ok=True)

    def read_exported(self) -> dict[str, Exported]:
        """The commit and tree of every seal whose objects are in the packs, by seal id."""
        try:
            raw = (self.folder / "seals").read_bytes()
        except FileNotFoundError:
            return {}
        by_seal = {}
        for at in range(0, len(raw) - _RECORD + 1, _RECORD):  # a record that was cut off counts for nothing
            tree = at + SEAL_BYTES + ID_BYTES
            commit = raw[at + SEAL_BYTES : tree]
            by_seal[raw[at : at + SEAL_BYTES].hex()] = Exported(commit, raw[tree : at + _RECORD])
        return by_seal

    def new_pack(self) -> IO[bytes]:
        """Open a new temporary file in which a pack is written."""
        return tempfile.NamedTemporaryFile("w+b", dir=self.packs, prefix="tmp_pack_", delete=False)

    def add_pack(self, file: IO[bytes], entries: Sequence[PackEntry]) -> int:
        """Complete the pack in `file`, write its index, and move both into place. `entries`: the objects in
        the pack. Returns its size in bytes."""
        path = Path(file.name)
        with file:
            if not entries:
                path.unlink()
                return 0
            file.seek(0)
            file.write(pack_header(len(entries)))
            file.seek(0)
            checksum = hashlib.sha1(usedforsecurity=False)
            while piece := file.read(_PIECE):
                checksum.update(piece)
            file.write(checksum.digest())
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        name = self.packs / f"pack-{checksum.hexdigest()}"
        path.chmod(0o400)
        path.rename(name.with_suffix(".pack"))
        _replace(name.with_suffix(".idx"), pack_index(entries, checksum.digest()))
        return size

    def add_seals(self, records: Iterable[tuple[str, Exported]]) -> None:
        """Record seals whose objects are all in the packs."""
        path = self.folder / "seals"
        with path.open("ab") as file:
            file.truncate(file.tell() - file.tell() % _RECORD)
            file.write(
                b"".join(bytes.fromhex(seal) + exported.commit + exported.tree for seal, exported in records)
            )
            file.flush()
            os.fsync(file.fileno())

    def write_refs(
        self, default_branch: str, refs: Sequence[Ref], commits: Sequence[bytes], digest: str
    ) -> None:
        """Write the refs and their fingerprint. `packed-refs` gets each ref with the commit of its seal, and
        `current` gets `digest`, the fingerprint. The packs must contain all objects of the commits."""
        named = sorted((ref.full_name, commit.hex()) for ref, commit in zip(refs, commits, strict=True))
        lines = [
            "# pack-refs with: peeled fully-peeled sorted ",
            *(f"{commit} {name}" for name, commit in named),
        ]
        _replace(self.folder / "packed-refs", ("\n".join(lines) + "\n").encode())
        _replace(self.folder / "HEAD", f"ref: refs/heads/{default_branch}\n".encode())
        _replace(self.folder / "current", digest.encode())

    def pack_sizes(self) -> dict[str, int]:
        """Bytes of each pack, by its name."""
        return {path.name: _size_of(path) for path in self.packs.glob("*.pack")}

    def mark_joined(self) -> None:
        """Record the names of all current packs as joined ones. Packs with other names were added later."""
        _replace(self.folder / "joined", "\n".join(sorted(self.pack_sizes())).encode())

    def read_joined(self) -> set[str]:
        """Read the names of the packs that existed when packs were last joined into one. Packs with other
        names were added since."""
        return set((_read_text(self.folder / "joined") or "").split())

    def evict(self) -> bool:
        """Delete the cache. Returns False if a process is reading or building it."""
        with self.building() as lock:
            return lock is not None and self.remove()

    def remove(self) -> bool:
        """Delete the cache; the caller holds the builder's lock. Returns False if a process is reading it."""
        path = self.root / f"{self.repo_id}.readers"
        try:
            descriptor = _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            gone = self.root / f"{self.repo_id}.gone"  # a reader finds all of it, or nothing
            shutil.rmtree(gone, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                self.folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        finally:
            os.close(descriptor)
        return True

    def refuse(self, why: str) -> None:
        """Delete the cache, and record for a day why it cannot be built."""
        self.evict()
        _replace(self.root / f"{self.repo_id}.refused", why.encode())

    def forget(self) -> None:
        """Delete the lock files and the records of failed builds, for a repository that no longer
        exists."""
        for suffix in ("lock", "readers", "refused", "fault"):
            (self.root / f"{self.repo_id}.{suffix}").unlink(missing_ok=True)


def list_caches(data: Path) -> list[Cache]:
    """List the caches that exist, wholly or in part. The least recently read one comes first."""
    names = {path.stem for path in (data / FOLDER).glob("*.*")}
    return sorted((Cache(data, name) for name in names), key=_last_read)


def size_of(cache: Cache) -> int:
    """The bytes of all files of a cache together."""
    return sum(_size_of(path) for path in cache.folder.rglob("*"))


def _size_of(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _last_read(cache: Cache) -> float:
    with contextlib.suppress(FileNotFoundError):
        return (cache.folder / "read").stat().st_mtime
    return 0.0


def _read_text(path: Path) -> str | None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return path.read_text("utf-8")
    return None


def _replace(path: Path, content: bytes) -> None:
    """Replace a file by renaming a complete new file over it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="tmp_")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(name).rename(path)


def _lock(path: Path, how: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
