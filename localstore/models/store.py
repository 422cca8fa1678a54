"""Names and blobs of the models' cache. A blob is a file named by its SHA-256. A name is a record that refers
to blobs. Both are put in place by a rename under one lock, so that readers need no lock."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from localstore.disk_errors import disk_error
from localstore.errors import DiskError
from localstore.folder.lock import AlreadyLocked, hold_lock
from localstore.models.errors import ModelChanged, ModelMissing
from localstore.models.gguf import Header
from localstore.models.names import ModelName
from localstore.models.reservations import list_reserved, reserve

LOCK_SECONDS = 30.0
ORPHAN_SECONDS = 86400.0  # after which a blob that was uploaded and never named is removed


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a blob. `how`: how it was added, which is reflink, link, copy, upload or fetched;
    `source`: from where. A linked file can be changed under its other name, so `inode` and `mtime_ns` are
    compared before it is loaded."""

    size: int
    blake3: str
    how: str
    source: str
    inode: int
    mtime_ns: int
    header: Header


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The repository from which a model was pulled. `server`: origin of the relay; `repo_id`, `seal`:
    repository and seal; `path`: path of the model in the repository."""

    server: str
    repo_id: str
    seal: str
    path: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's name stands for. `model`, `shards` and `projector`: the SHA-256 of the model's first
    file, of its further files and of its projector. The other members override values of the model's header,
    unless they are None."""

    v: int = 1
    model: str
    shards: list[str] = []
    projector: str | None = None
    modified_at: str
    source: Source | None = None
    system: str | None = None
    template: str | None = None
    license: str | None = None
    parameters: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of all blobs of the record: the files of the model in order, then the projector."""
        return [self.model, *self.shards, *([self.projector] if self.projector else [])]


class Installed(msgspec.Struct, frozen=True):
    """A model in the cache: its name, its record, and the descriptions of its blobs."""

    name: ModelName
    record: Record
    about: About
    projector: About | None = None
    shards: list[About] = []

    @property
    def size(self) -> int:
        return sum(about.size for about in self.abouts)

    @property
    def parameters(self) -> int:
        """The number of weights of the model, in all its files."""
        return sum(about.header.parameters for about in (self.about, *self.shards))

    @property
    def abouts(self) -> list[About]:
        """The descriptions of the model's blobs, in the order of `Record.digests`."""
        return [self.about, *self.shards, *([self.projector] if self.projector else [])]


class Models:
    """The cache of models below SVC_LLM_HOME; created on first use, readable by its owner only."""

    def __init__(self, home: Path) -> None:
        self.root = home / "models"
        self.blobs = self.root / "blobs"
        self._names = self.root / "names"
        self._shards = self.root / "shards"
        self._reserved = self.root / "reserved"

    def blob(self, digest: str) -> Path:
        return self.blobs / f"sha256-{digest}"

    def about(self, digest: str) -> About | None:
        """The description of the blob; None if it is not in the cache."""
        try:
            about = msgspec.json.decode(self._about(digest).read_bytes(), type=About)
        except (OSError, msgspec.MsgspecError):
            return None
        return about if self.blob(digest).exists() else None

    def by_blake3(self, digest: str) -> str | None:
        """The SHA-256 of the blob with this BLAKE3. None if the blob is not in the cache, or if its file was
        changed."""
        for path in self.blobs.glob("sha256-*.about"):
            sha256 = path.name.removeprefix("sha256-").removesuffix(".about")
            about = self.about(sha256)
            if about is not None and about.blake3 == digest and self.intact(sha256, about):
                return sha256
        return None

    def chunks_file(self, digest: str) -> Path:
        """The path of the file that contains a blob's list of chunks. The file exists once the chunks are
        known."""
        return self.blobs / f"sha256-{digest}.chunks"

    def intact(self, digest: str, about: About) -> bool:
        """Whether the file of a blob is unchanged since it was added to the cache."""
        try:
            info = self.blob(digest).stat()
        except OSError:
            return False
        same = info.st_size == about.size
        return same and (
            about.how != "link" or (info.st_ino, info.st_mtime_ns) == (about.inode, about.mtime_ns)
        )

    def all(self) -> list[Installed]:
        """Every model whose blobs are all in the cache, the newest first."""
        installed = []
        for path in self._names.glob("*/*/*/*"):
            name = ModelName.at(PurePosixPath(path.relative_to(self._names)))
            model = self._read(name) if name is not None else None
            if model is not None:
                installed.append(model)
        return sorted(installed, key=lambda model: (model.record.modified_at, str(model.name)), reverse=True)

    def find(self, name: ModelName) -> Installed:
        """The model of this name. Raises ModelMissing."""
        installed = self._read(name)
        if installed is None:
            raise ModelMissing(name.short)
        return installed

    def files_to_load(self, installed: Installed) -> tuple[Path, Path | None]:
        """The paths of the model's first file and of its projector (None without one). Raises ModelChanged if
        a file was changed since it was added."""
        record = installed.record
        for digest, about in zip(record.digests, installed.abouts, strict=True):
            if not self.intact(digest, about):
                raise ModelChanged(installed.name.short, about.source)
        file = self._link_files(record) if record.shards else self.blob(record.model)
        return file, self.blob(record.projector) if record.projector else None

    def _link_files(self, record: Record) -> Path:
        """The path of the first file of a model that has several files. It is in a folder of links, by which
        the files have the names that the LLM engine expects."""
        folder = self._shards / record.model
        files = [record.model, *record.shards]
        with self.hold_lock():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for number, digest in enumerate(files, 1):
                path, target = folder / f"model-{number:05}-of-{len(files):05}.gguf", self.blob(digest)
                if not path.is_symlink() or path.readlink() != target:
                    path.unlink(missing_ok=True)
                    path.symlink_to(target)
        return folder / f"model-00001-of-{len(files):05}.gguf"

    def put(self, name: ModelName, record: Record) -> Installed:
        """Store the record under this name. Raises ModelMissing if one of its blobs was removed meanwhile."""
        with self.hold_lock():
            if any(self.about(digest) is None for digest in record.digests):
                raise ModelMissing(name.short)
            path = self._names / name.path
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write(path, msgspec.json.encode(record))
        return self.find(name)

    @contextmanager
    def reserve(self, keys: Iterable[str]) -> Iterator[None]:
        """A context in which `remove` does not delete these blobs. `keys`: `sha256-<hex>` or `b3-<hex>`."""
        with ExitStack() as stack:
            with self.hold_lock():
                stack.enter_context(reserve(self._reserved, keys))
            yield

    def put_about(self, digest: str, about: About) -> None:
        write(self._about(digest), msgspec.json.encode(about))

    def remove(self, name: ModelName) -> tuple[Installed, int]:
        """Remove a name, and those of its blobs that no other name and no running pull needs. Returns (the
        removed model, freed bytes). Raises ModelMissing."""
        with self.hold_lock():
            removed = self.find(name)
            path = self._names / name.path
            path.unlink()
            for folder in list(path.parents)[:3]:
                with suppress(OSError):
                    folder.rmdir()
            used = {digest for model in self.all() for digest in model.record.digests}
            used |= self._reserved_digests()
            freed = sum(self._drop(digest) for digest in removed.record.digests if digest not in used)
            self._drop_orphans(used)
        return removed, freed

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """A context that holds the lock of the cache, after waiting for another holder. Raises DiskError if
        the lock does not become free, or if files of the cache cannot be written."""
        with ExitStack() as stack:
            try:
                self.blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
                # Removing models must work on a full disk.
                lock = hold_lock(self.root / "lock", "svc llm", LOCK_SECONDS, may_be_nameless=True)
                stack.enter_context(lock)
            except AlreadyLocked as locked:
                raise DiskError(
                    f"the models in {self.root} are locked by {locked.holder}; end that process first"
                ) from None
            except OSError as error:
                raise disk_error(error, self.root) from error
            try:
                yield
            except OSError as error:
                raise disk_error(error, self.root) from error

    def _read(self, name: ModelName) -> Installed | None:
        try:
            record = msgspec.json.decode((self._names / name.path).read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError):
            return None
        about = self.about(record.model)
        shards = [shard for shard in map(self.about, record.shards) if shard is not None]
        projector = self.about(record.projector) if record.projector else None
        if about is None or len(shards) < len(record.shards) or (record.projector and projector is None):
            return None
        return Installed(name, record, about, projector, shards)

    def _reserved_digests(self) -> set[str]:
        """The SHA-256 of the blobs in the cache that running pulls need."""
        keys = list_reserved(self._reserved)
        digests = {key.removeprefix("sha256-") for key in keys if key.startswith("sha256-")}
        if len(digests) < len(keys):
            for path in self.blobs.glob("sha256-*.about"):
                digest = path.name.removeprefix("sha256-").removesuffix(".about")
                about = self.about(digest)
                if about is not None and f"b3-{about.blake3}" in keys:
                    digests.add(digest)
        return digests

    def _about(self, digest: str) -> Path:
        return self.blobs / f"sha256-{digest}.about"

    def _drop(self, digest: str) -> int:
        """Remove a blob. Returns how many bytes this frees, which is 0 if the file has another name (hard
        link)."""
        self._about(digest).unlink(missing_ok=True)
        self.chunks_file(digest).unlink(missing_ok=True)
        blob, info = self.blob(digest), None
        with suppress(OSError):
            info = blob.stat()
        blob.unlink(missing_ok=True)
        shutil.rmtree(self._shards / digest, ignore_errors=True)
        return info.st_size if info is not None and info.st_nlink == 1 else 0

    def _drop_orphans(self, used: set[str]) -> None:
        """Remove the blobs that uploads or pulls left when they were interrupted more than a day ago. `used`:
        SHA-256 of the blobs that names refer to."""
        for path in self.blobs.iterdir():
            digest = path.name.removeprefix("sha256-").removesuffix(".about").removesuffix(".chunks")
            with suppress(OSError):
                if digest not in used and time.time() - path.stat().st_ctime > ORPHAN_SECONDS:
                    path.unlink()


def write(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
