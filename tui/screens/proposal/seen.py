"""Remembers which files of a proposal the user has marked as seen. A file counts as not seen again once its
changes differ from those that were marked."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from localstore.core.model.history import ChangedFile
from tui.client import Client

_PLACES = re.compile(r"^@@ .*$", re.MULTILINE)  # they move when lines above change


class SeenFiles:
    """The files of one proposal that are marked as seen (`paths`). They are stored on this machine."""

    def __init__(self, client: Client, repo_id: str, number: int) -> None:
        self._client, self._key = client, f"repos/{repo_id}/proposals/{number}/seen"
        stored = client.store.get(client.space, self._key, dict[str, str])
        self._digests: dict[str, str] = stored.value if stored is not None else {}  # by path
        self._lock = threading.Lock()
        self.paths: set[str] = set()  # the files that are seen as they are now

    def compare(self, files: Sequence[ChangedFile], head: str) -> None:
        """Find out which marks are still valid. A mark is valid while the changes of the file are the same as
        when it was marked. `head`: the newest seal."""
        self.paths = {file.path for file in files if self._digests.get(file.path) == digest_of(file, head)}

    def mark(self, files: Iterable[ChangedFile], head: str, *, seen: bool) -> None:
        """Mark files as seen or, if `seen` is False, as not seen."""
        for file in files:
            if seen:
                self._digests[file.path] = digest_of(file, head)
                self.paths.add(file.path)
            else:
                self._digests.pop(file.path, None)
                self.paths.discard(file.path)

    def keep(self) -> None:
        """Store the marks on this machine. Call it on a thread."""
        with self._lock:  # the newest are stored last
            self._client.store.put(self._client.space, self._key, dict(self._digests))


def digest_of(file: ChangedFile, head: str) -> str:
    """Returns a digest of a file's changes. It does not depend on where in the file the changes are. If the
    changes are too large to be shown, the digest depends on `head` instead."""
    patch = head if file.patch is None else _PLACES.sub("@@", file.patch)
    words = "\0".join((file.status, file.old_path or "", patch))
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
