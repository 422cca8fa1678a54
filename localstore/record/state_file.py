"""The file `.svc/state.json`, which has the last seal's tree. The record stores the digest of the file, so
that a change by somebody else is noticed. After a new seal, only the parts that the seal changed are computed
again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from blake3 import blake3

from localstore.folder import link
from localstore.folder.link import SealedState
from localstore.record.database import Database, SealedFile

WRITTEN = "state"  # in the record: BLAKE3 of the file as it was last written
BLOCK = 1 << 16
_TREE, _BEFORE_KEY = b'"tree":{', (b"{", b",")

Parts: TypeAlias = list[bytes | memoryview]
"""The bytes of the file, in parts."""


class StateFile:
    def __init__(self, folder: Path, db: Database) -> None:
        self._folder, self._db = folder, db
        self._path = folder / link.FOLDER / link.STATE_FILE

    def is_written(self) -> bool:
        """Whether the file `.svc/state.json` still has the content that svc wrote last."""
        hasher = blake3()
        try:
            with self._path.open("rb", buffering=0) as file:
                while block := file.read(BLOCK):
                    hasher.update(block)
        except OSError:
            return False
        return hasher.digest() == self._db.get(WRITTEN)

    def rewrite(self) -> None:
        """Write the whole file from the record."""
        with self._db.step():
            state = self.prepare(None)
        self.write(state)

    def prepare(self, changes: Mapping[str, SealedFile | None] | None) -> Parts:
        """The new bytes of the file after a seal, in parts. Their digest is recorded in the caller's
        transaction. `changes`: what the seal changed; None if this is unknown, so that all bytes are made
        anew."""
        state = None if changes is None else self._replace_changed(changes)
        if state is None:
            whole = SealedState(last_seal=self._db.text("last"), tree=self._db.sealed_digests())
            state = [link.encode_state(whole)]
        self._db.put(WRITTEN, _digest(state))
        return state

    def write(self, state: Parts) -> None:
        """Write the bytes that `prepare` returned. Call it after the transaction is committed."""
        link.write_encoded(self._folder, state)

    def _replace_changed(self, changes: Mapping[str, SealedFile | None]) -> Parts | None:
        digests = {path: file.digest.hex() for path, file in changes.items() if file is not None}
        if len(digests) < len(changes):
            return None
        try:
            before = self._path.read_bytes()
        except OSError:
            return None
        if _digest([before]) != self._db.get(WRITTEN):
            return None
        return replace_digests(before, self._db.text("last"), digests)


def replace_digests(before: bytes, last_seal: str | None, digests: Mapping[str, str]) -> Parts | None:
    """The bytes of a state file with `last_seal` as its last seal and with some digests replaced. `before`:
    its present bytes; `digests`: path → hex digest. None if one of the paths is not in the file."""
    head, _, _ = link.encode_state(SealedState(last_seal=last_seal, tree={})).partition(_TREE)
    parts: Parts = [head]
    view, copied = memoryview(before), before.index(_TREE)
    for path in sorted(digests):
        key = msgspec.json.encode(path) + b':"'
        at = before.find(key, copied)
        if at < 0 or before[at - 1 : at] not in _BEFORE_KEY:
            return None
        parts += [view[copied : at + len(key)], digests[path].encode()]
        copied = at + len(key) + len(digests[path])
    return [*parts, view[copied:]]


def _digest(parts: Parts) -> bytes:
    hasher = blake3()
    for part in parts:
        hasher.update(part)
    return hasher.digest()
