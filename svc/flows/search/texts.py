"""Reads the texts in which `svc grep` searches: those of the linked folder, or of a seal.

Each text is read when the iteration reaches it, so that memory stays bounded whatever the size. The folder is
locked only while its record is read, not while the caller works with the texts."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.model.limits import MIB, TEXT_FILE
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


class Texts:
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
        self.skipped: dict[str, int] = {}

    @property
    def of_folder(self) -> bool:
        """Whether the files of the folder are searched, and not those of a seal."""
        return not self._seal and self._where.linked is not None and self._where.named_repo is None

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
                if data is None:
                    self._count("unreadable")
                yield path, self._decode(data) if data is not None else None

    def _of_seal(self) -> Iterator[tuple[str, str | None]]:
        """Yields (path, text) of the files of the seal that the user may see. The text is None if the file
        has none."""
        where = self._where
        here = where.linked is not None and where.named_repo is None
        seal = self._seal_here() if here else None
        if seal is None:
            repo = where.readable_repo
            seal = seal_of(where, repo, self._seal or default_ref(where, repo))
            repo_id, branch = repo.id, repo.default_branch
        if here:
            _, link = where.linked_folder()
            repo_id, transport = link.repo_id, transport_of(where, link)
        else:
            transport = BranchTransport(where.reader, repo_id, branch)
        files = self._recorded(seal) if here else None
        if files is None:
            payload = verify.seal(transport.seal(seal), seal, repo_id)
            files = verify.files(transport, seal, payload)
        batch: list[str] = []
        size = 0
        for path in self._chosen(files):
            if files[path].kind != "text":
                self._count("binary")
            elif batch and (size + files[path].size > BATCH_BYTES or len(batch) >= BATCH_FILES):
                yield from self._read_batch(transport, {path: files[path] for path in batch}, here)
                batch, size = [], 0
            batch.append(path)
            size += files[path].size if files[path].kind == "text" else 0
        yield from self._read_batch(transport, {path: files[path] for path in batch}, here)

    def _seal_here(self) -> str | None:
        """Return the id of the seal if the folder knows it without asking the server; else None."""
        known = self._where.linked[1].shown_seal if self._where.linked else None
        known = known or last_seal(self._where)
        return known if known is not None and self._seal in (*HEADS, known) else None

    def _recorded(self, seal: str) -> dict[str, SealedFile] | None:
        """Return the files of the seal by path, if the record has all of them with their texts; else None."""
        with copy_for_reading(self._where) as copy:
            if seal != copy.last_seal:
                return None
            files = copy.db.read_sealed()
            texts = {file.digest for file in files.values() if file.kind == "text"}
            return files if len(copy.db.objects.places(texts)) == len(texts) else None

    def _read_batch(
        self, transport: Transport, files: Mapping[str, SealedFile], here: bool
    ) -> Iterator[tuple[str, str | None]]:
        """Yields (path, text) of these files of a seal. Texts that the folder's record lacks are fetched. The
        text is None for a file that has none."""
        sizes = {file.digest: file.size for file in files.values() if file.kind == "text"}
        texts: dict[bytes, bytes] = {}
        if here and sizes:
            with copy_for_reading(self._where) as copy:
                copy.objects.load(sizes)
                for digest in sizes:
                    text = copy.objects.get(digest)
                    if text is not None:
                        texts[digest] = text
        missing = {digest: size for digest, size in sizes.items() if digest not in texts}
        texts.update(fetch(transport, None, missing))
        for path, file in files.items():
            if file.kind != "text":
                yield path, None
            elif file.digest in texts:
                yield path, self._decode(texts[file.digest])
            else:
                raise ServerMisbehaved(f"the server did not send {path}; try again")

    def _decode(self, data: bytes) -> str | None:
        try:
            if b"\0" not in data:
                return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        self._count("binary")
        return None


def _is_path(where: Where, word: str) -> bool:
    """Return whether the word names a file or folder here, or is a pattern of paths. Otherwise it names a
    seal."""
    if GLOB.search(word):
        return True
    return where.linked is not None and where.named_repo is None and (where.folder / word).exists()
