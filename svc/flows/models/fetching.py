"""Downloads the files of models into the store of models, where each file is a blob: it is named by its
SHA-256. Checks first that the disk has enough space. Only one process at a time downloads a blob, and chunks
that this machine already has are not downloaded."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple

from blake3 import blake3

from localstore.core.errors import ServerMisbehaved
from localstore.core.model.limits import GGUF_CHUNK_LISTS
from localstore.core.paths import terminal_safe
from localstore.disk_errors import FULL, translated_disk_errors
from localstore.errors import DiskError
from localstore.folder.chunking import ChunkList, ChunkPosition, cut_into_chunks
from localstore.models.errors import BadModel
from localstore.models.intake import take_upload
from localstore.models.pulls import PullReport, drop_old, parts_size, pull_blob
from localstore.models.store import Models, write
from localstore.sync.transfer.fill import KnownFile

CUT = 3  # blobs without a list of chunks that are cut to find some, at most
CUT_FACTOR = 2  # times the size of the wanted file: the bytes that are read for it, at most


class PullStep(NamedTuple):
    """A step of a pull, as Ollama's API reports it. `digest` is the digest of the blob that is being
    downloaded, as `ALGORITHM:HEX`. `total` is its size in bytes, and `completed` the number of bytes that are
    there. `known` is the number of bytes that this machine had before the pull."""

    status: str
    digest: str = ""
    total: int = 0
    completed: int = 0
    known: int = 0

    @property
    def line(self) -> dict[str, object]:
        """Return the step as a JSON object, in the form in which `/api/pull` answers it."""
        fields: dict[str, object] = {"status": self.status}
        if self.digest:
            fields |= {"digest": self.digest, "total": self.total}
            fields |= {"completed": self.completed} if self.completed else {}
        return fields


Tell = Callable[[PullStep], None]


class Part(NamedTuple):
    """A file of a model that is to be downloaded as a blob. `digest` is `blake3:<hex>` or `sha256:<hex>`.
    `path` says, for people, where the file comes from.

    `write` downloads the missing bytes into a file. It is called with a file descriptor, a function that it
    calls with all bytes of the file in order, and a function that reports the progress. It returns the file's
    list of chunks, if there is one, and raises WrongBytes."""

    digest: str
    size: int
    path: str
    write: Callable[[int, Callable[[bytes], object], PullReport], ChunkList | None]

    @property
    def key(self) -> str:
        """The name, made from the digest, of the temporary files that this download uses."""
        return self.digest.replace("blake3:", "b3-").replace(":", "-")


class WrongBytes(Exception):
    """Raised if the received bytes do not have the announced digest."""


def fetch_parts(models: Models, parts: list[Part], tell: Tell, name: str = "") -> list[str]:
    """Download the files of the model `name` that this machine lacks; `parts` describes all its files.
    Returns the SHA-256 of all files, in order. Raises DiskError if the disk is full, ServerMisbehaved for
    wrong bytes, BadModel for a file that is not a model."""
    with translated_disk_errors(models.root, models.root):
        drop_old(models, {part.key for part in parts})
        require_room(models, parts)
        return [_fetch_part(models, part, tell, name) for part in parts]


def _find(models: Models, part: Part) -> str | None:
    kind, _, digest = part.digest.partition(":")
    if kind == "blake3":
        return models.by_blake3(digest)
    about = models.about(digest)
    return digest if about is not None and models.intact(digest, about) else None


def require_room(models: Models, parts: list[Part]) -> None:
    """Raise DiskError if the disk has not enough space for the parts that must be downloaded."""
    missing = [part for part in parts if _find(models, part) is None]
    need = sum(max(0, part.size - parts_size(models, part.key)) for part in missing)
    models.blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
    free = shutil.disk_usage(models.blobs).free
    if need > free:
        raise DiskError(
            f"the model needs {need:,} bytes more in {models.blobs}, and {free:,} are free; free some space, "
            "or set SVC_LLM_HOME to a folder on another disk"
        )


def _fetch_part(models: Models, part: Part, tell: Tell, name: str) -> str:
    status = f"pulling {part.digest.partition(':')[2][:12]}"

    def report(completed: int, total: int, present: int = 0, /) -> None:
        tell(PullStep(status, part.digest, total or part.size, completed, present))

    report(0, part.size)
    find, work = partial(_find, models, part), partial(_work, models, part)
    sha256 = pull_blob(models, part.key, find, work, report, name)
    report(part.size, part.size)
    return sha256


def _work(models: Models, part: Part, file: Path, report: PullReport) -> str:
    """Download the missing bytes of a model's file, then move it into the store of models as a blob. Returns
    its SHA-256. If the download fails, the received bytes are kept for the next attempt, unless they are
    wrong."""
    first, second = hashlib.sha256(), blake3()

    def seen(data: bytes) -> None:
        first.update(data)
        second.update(data)

    try:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            chunks = part.write(fd, seen, report)
            os.fsync(fd)
            length = os.fstat(fd).st_size
        finally:
            os.close(fd)
        sha256, digest = first.hexdigest(), second.hexdigest()
        actual = f"blake3:{digest}" if part.digest.startswith("blake3:") else f"sha256:{sha256}"
        if actual != part.digest or length != part.size:
            raise WrongBytes
        take_upload(models, file, sha256, digest, part.path, "fetched")
    except WrongBytes:
        file.unlink(missing_ok=True)
        raise ServerMisbehaved(
            f"the server sent other bytes than {terminal_safe(part.path)} has; nothing of them was kept, try "
            "again"
        ) from None
    except BadModel as error:
        file.unlink(missing_ok=True)
        raise BadModel(f"{terminal_safe(part.path)}: {error.detail}") from None
    except OSError as error:
        full = error.errno in FULL
        then = (
            "free some space, then pull again: it goes on where it was" if full else "see the folder's rights"
        )
        raise DiskError(
            f"{terminal_safe(part.path)} cannot be written to {file.parent}: {error.strerror}; {then}"
        ) from None
    if chunks is not None:
        write(models.chunks_file(sha256), chunks.to_bytes())
    return sha256


# --- chunks that are known here


def known_files(models: Models, size: int, note: Callable[[str], None]) -> Iterator[KnownFile]:
    """Yields blobs on this machine that may contain chunks of a file of `size` bytes. Blobs whose chunks are
    listed in a file come first. Other blobs must be read completely, so only a few of them are yielded: at
    most CUT, with at most CUT_FACTOR times `size` bytes in total. `note` is called with a sentence about each
    of these."""
    candidates = []
    for path in models.blobs.glob("sha256-*.about"):
        digest = path.name.removeprefix("sha256-").removesuffix(".about")
        about = models.about(digest)
        if about is not None:
            candidates.append(
                (not models.chunks_file(digest).exists(), abs(about.size - size), about.size, digest)
            )
    cut = cut_bytes = 0
    for unlisted, _, bytes_of_it, digest in sorted(candidates):
        if unlisted:
            fits = cut_bytes + bytes_of_it <= size * CUT_FACTOR
            if cut == CUT or not fits or bytes_of_it < size // 2:
                continue
            cut, cut_bytes = cut + 1, cut_bytes + bytes_of_it
            about = models.about(digest)
            label = PurePath(about.source).name if about is not None else digest[:12]
            name = f"{terminal_safe(label)}, {bytes_of_it:,} bytes,"
            note(f"reading {name} for what need not be fetched")
        blob = models.blob(digest)
        yield KnownFile(partial(os.open, blob, os.O_RDONLY | os.O_CLOEXEC), partial(_chunks, models, digest))


def _chunks(models: Models, digest: str, fd: int) -> Iterable[ChunkPosition]:
    """Return the chunks of a blob, which is open as `fd`. They come from the stored list of chunks. If there
    is none, the blob is read to make one."""
    file = models.chunks_file(digest)
    try:
        if file.stat().st_size <= GGUF_CHUNK_LISTS:
            return ChunkList.from_bytes(file.read_bytes())
    except (OSError, ValueError):
        pass
    with open(fd, "rb", buffering=0, closefd=False) as blob:
        listed = cut_into_chunks(blob)
    with suppress(OSError):
        write(file, listed.to_bytes())
    return listed
