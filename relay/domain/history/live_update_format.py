"""The stored form of the live updates that a seal contains. There is one row for each request.

`changes` says for every update who changed which path and when. `edits` contains the signed bytes of each
edit, so that its signature can be verified as long as the seal is readable. Both are msgpack after one byte,
which is 0 for uncompressed and 1 for compressed by zstd. Signatures of created, deleted or replaced files are
not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import zstandard

from localstore.core.encoding import b64u, unb64u
from localstore.core.lane.update import LiveUpdate, UpdateKind
from localstore.core.model.live import UpdateAnswer

Asked = tuple[LiveUpdate, list[bytes]]  # an update and its operations, decoded
SMALL = 256  # bytes that are not worth compressing
_LEVEL = 1


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One update: its number on the branch, its kind and path, and the time in milliseconds at which it was
    accepted."""

    seq: int
    kind: UpdateKind
    path: str
    at: int


class AuthorChanges(msgspec.Struct, frozen=True, array_like=True):
    """Updates of one replica, in the order of their numbers."""

    account_id: str
    device_key_id: str
    replica: int
    changes: list[Change]


class SignedEdit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The signed fields of an edit, without path, kind and author. These are in the `Change` with the same
    number `seq`."""

    seq: int
    n: int
    settled: int
    gen: int
    base: int
    epoch: int
    signature: bytes
    ops: list[bytes]
    typed: bool = False

    def update(self, path: str) -> LiveUpdate:
        """Put the update together again in the form in which its device signed and sent it."""
        return LiveUpdate(
            n=self.n,
            settled=self.settled,
            path=path,
            kind="edit_text",
            gen=self.gen,
            base=self.base,
            signature=b64u(self.signature),
            epoch=self.epoch,
            ops=[b64u(operation) for operation in self.ops],
            typed=self.typed,
        )


_encode = msgspec.msgpack.Encoder().encode
_authors = msgspec.msgpack.Decoder(list[AuthorChanges])
_edits = msgspec.msgpack.Decoder(list[SignedEdit])


def changed_by(
    sent: Iterable[tuple[LiveUpdate, list[bytes]]], answers: Sequence[UpdateAnswer], before: int, now: int
) -> tuple[list[Change], list[SignedEdit]]:
    """Collect, as (changes, edits), those updates of a request that changed something: they got a number
    above `before`. Repeats, refusals and updates without effect got no such number."""
    changes: list[Change] = []
    edits: list[SignedEdit] = []
    last = before
    for (update, ops), answer in zip(sent, answers, strict=True):
        if answer.result != "ok" or answer.seq <= last:
            continue
        last = answer.seq
        changes.append(Change(last, update.kind, update.path, now))
        if update.kind == "edit_text":
            signature = unb64u(update.signature)
            edits.append(
                SignedEdit(
                    last,
                    update.n,
                    update.settled,
                    update.gen,
                    update.base,
                    update.epoch or 0,
                    signature,
                    ops,
                    update.typed,
                )
            )
    return changes, edits


def pack_changes(authors: list[AuthorChanges]) -> bytes:
    return _pack(_encode(authors))


def pack_edits(edits: list[SignedEdit]) -> bytes | None:
    return _pack(_encode(edits)) if edits else None


def changes_of(raw: bytes) -> list[AuthorChanges]:
    return _authors.decode(_unpack(raw))


def edits_of(raw: bytes | None) -> list[SignedEdit]:
    return _edits.decode(_unpack(raw)) if raw is not None else []


def _pack(raw: bytes) -> bytes:
    if len(raw) < SMALL:
        return b"\0" + raw
    return b"\1" + zstandard.ZstdCompressor(level=_LEVEL).compress(raw)


def _unpack(raw: bytes) -> bytes:
    return raw[1:] if raw[:1] == b"\0" else zstandard.ZstdDecompressor().decompress(raw[1:])
