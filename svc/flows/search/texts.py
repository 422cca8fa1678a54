"""Reads the texts in which `svc grep` and the app search: those of the linked folder, or of a seal.

Each text is read when the iteration reaches it, so that memory stays bounded whatever the size. The folder is
locked only while its record is read, not while the caller works with the texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.model.limits import MIB, TEXT_FILE
from localstore.core.model.repo import Repo
from localstore.core.pathspec import GLOB, matching, without_match
from localstore.folder.files import Files
from localstore.record.database import SealedFile
from localstore.sync import verify
from localstore.sync.transfer.fetch import fetch
from localstore.sync.transfer.transport import Transport
from svc.api.sync_transport import BranchTransport
from svc.flows.place.folder import copy_for_reading, transport_of
from svc.flows.place.refs import HEADS, default_ref, last_seal, seal_of
from svc.flows.place.where import Where

BATCH_BYTES, BATCH_FILES = 8 * MIB, 1024  # of the texts of a seal that are read at once


class SearchTexts:
    """The texts to search in. `skipped` has the numbers of files that were passed over, by reason. They are
    complete once `read` has ended."""

    def __init__(self, where: Where, seal: str = "", paths: Sequence[str] = ()) -> None:
        """Search the seal that `seal` names, or if it is "", the folder as it is on the disk. Outside of a
        linked folder, and if an option names the repository, "" means the newest seal of the default branch.
        If `paths` are given, only files at or below them are searched; they may be patterns. The first of
        them may be given as `seal`, if it names a file or is a pattern."""
        if seal and _is_path(where, seal):
            seal, paths = "", [seal, *paths]
        self._where, self._seal = where, seal
        self._patterns = [where.path_in_repo(path) for path in paths]
        self._in_folder = _is_in_folder(where)
        self.skipped: dict[str, int] = {}

    @property
    def of_folder(self) -> bool:
        """Whether the files of the folder are searched, and not those of a seal."""
        return self._in_folder and not self._seal

    def read(self) -> Generator[tuple[str, str], None, None]:
        """Yields (path, text), sorted by path. Raises NotFound at the end for a path of the user that names
        no file."""
        unmatched = list(self._patterns)
        for path, text in self._of_folder() if self.of_folder else self._of_seal():
            unmatched = without_match([path], unmatched) if unmatched else unmatched
            if text is not None:
                yield path, text
        if unmatched:
            place = "this folder" if self.of_folder else "this seal"
            raise NotFound(f"no file of {place} is {unmatched[0]}; svc status shows what is left out here")

    def _count(self, reason: str, number: int = 1) -> None:
        if number:
            self.skipped[reason] = self.skipped.get(reason, 0) + number

    def _chosen(self, paths: Collection[str]) -> list[str]:
        return sorted(path for path in paths if not self._patterns or matching(path, self._patterns))

    def _of_folder(self) -> Iterator[tuple[str, str | None]]:
        """Yields (path, text) of the files that a push would send. The text is None if the file has none."""
        with copy_for_reading(self._where) as copy:
            scan = copy.scan(lean=True)
            root, kinds = copy.folder, {path: stat.kind for path, stat in scan.files.items()}
            self._count("left out", len(self._chosen({item.path for item in scan.skipped})))
        with closing(Files(root)) as files:
            for path in self._chosen(kinds):
                if kinds[path] != "text":
                    self._count("binary")
                    yield path, None
                    continue
                data = files.read_up_to(path, TEXT_FILE)
                text = _decode(data) if data is not None else None
                if text is None:
                    self._count("unreadable" if data is None else "binary")
                yield path, text

    def _of_seal(self) -> Iterator[tuple[str, str | None]]:
        """Yields (path, text) of the files of the seal that the user may see. The text is None if the file
        has none."""
        seal, repo_id, transport = self._find_seal()
        files = self._read_recorded(seal) if self._in_folder else None
        if files is None:
            files = files_of_seal(transport, seal, repo_id)
        chosen = {path: files[path] for path in self._chosen(files)}
        for path, text in texts_of_seal(transport, chosen, self._read_stored if self._in_folder else None):
            if text is None:
                self._count("binary")
            yield path, text

    def _find_seal(self) -> tuple[str, str, Transport]:
        """Return the id of the seal, the id of its repository, and the requests with which it is read. No
        request is sent for the last seal of the folder, or the one that it shows."""
        where = self._where
        if not self._in_folder:
            repo = where.readable_repo
            seal = self._resolve(repo, self._seal or default_ref(where, repo))
            return seal, repo.id, BranchTransport(where.reader, repo.id, repo.default_branch)
        _, link = where.linked_folder()
        last = link.shown_seal or last_seal(where)
        if last is not None and self._seal in (*HEADS, last):
            seal = last
        else:
            seal = self._resolve(where.readable_repo, self._seal)
        return seal, link.repo_id, transport_of(where, link)

    def _resolve(self, repo: Repo, ref: str) -> str:
        """Return the id of the seal that `ref` names. Raises NotFound, which says where paths are typed."""
        try:
            return seal_of(self._where, repo, ref)
        except NotFound as error:
            if error.bare or not ("." in ref or "/" in ref):
                raise
            raise NotFound(f"{error.detail}; if it is a path: svc grep PATTERN -- {ref}") from None

    def _read_recorded(self, seal: str) -> dict[str, SealedFile] | None:
        """Return the files of the seal by path, if the record has all of them with their texts; else None."""
        with copy_for_reading(self._where) as copy:
            if seal != copy.last_seal:
                return None
            files = copy.db.read_sealed()
            texts = {file.digest for file in files.values() if file.kind == "text"}
            return files if len(copy.db.objects.places(texts)) == len(texts) else None

    def _read_stored(self, sizes: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """Return those of these texts that the folder's record has, by their digests."""
        with copy_for_reading(self._where) as copy:
            copy.objects.load(sizes)
            stored = ((digest, copy.objects.get(digest)) for digest in sizes)
            return {digest: text for digest, text in stored if text is not None}


def files_of_seal(transport: Transport, seal: str, repo_id: str) -> dict[str, SealedFile]:
    """Return the verified files of a seal that the user may see, by path."""
    return verify.files(transport, seal, verify.seal(transport.seal(seal), seal, repo_id))


def texts_of_seal(
    transport: Transport,
    files: Mapping[str, SealedFile],
    stored: Callable[[Mapping[bytes, int]], Mapping[bytes, bytes]] | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Yields (path, text) of these files of a seal. The text is None if the file has none. Only texts are
    read, each verified by its digest. `stored`: returns those of some texts (digest → size) that are stored
    here, by their digests; the others are fetched. Raises ServerMisbehaved if the server does not send
    one."""
    batch: dict[str, SealedFile] = {}
    size = 0
    for path, file in files.items():
        if file.kind != "text":
            yield path, None
            continue
        if batch and (size + file.size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield from _read_batch(transport, batch, stored)
            batch, size = {}, 0
        batch[path] = file
        size += file.size
    yield from _read_batch(transport, batch, stored)


def _read_batch(
    transport: Transport,
    files: Mapping[str, SealedFile],
    stored: Callable[[Mapping[bytes, int]], Mapping[bytes, bytes]] | None,
) -> Iterator[tuple[str, str | None]]:
    sizes = {file.digest: file.size for file in files.values()}
    texts = dict(stored(sizes)) if stored is not None and sizes else {}
    texts.update(
        fetch(transport, None, {digest: size for digest, size in sizes.items() if digest not in texts})
    )
    for path, file in files.items():
        if file.digest not in texts:
            raise ServerMisbehaved(f"the server did not send {path}; try again")
        yield path, _decode(texts[file.digest])


def _decode(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_in_folder(where: Where) -> bool:
    """Return whether the command is about the linked folder around it, and no option names a repository."""
    return where.linked is not None and where.named_repo is None


def _is_path(where: Where, word: str) -> bool:
    """Return whether the word names a file or folder here, or is a pattern of paths. Otherwise it names a
    seal."""
    return bool(GLOB.search(word)) or (_is_in_folder(where) and (where.folder / word).exists())
