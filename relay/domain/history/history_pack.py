"""A slice of the history (some successive seals, newest first) as one tar stream: seals, and the files that
they added.

The first member is `manifest.jsonl`. It has one line for each seal: the fields of `Seal`, and these:

    first line: `tree`, the whole tree of the seal as a list of `TreeFile`
    later lines: `changes`, arrays (path, kind or null, digest, size) against the tree of the line above
    first line, and each line where they differ from before: `tree_key` and `tree_key_id`

Then follow the files as `blobs/<blake3>`, each once, in the order in which the lines first name them. If a
slice skips seals, the reader has received them already; files of the last skipped seal are then left out. A
slice may have fewer seals than `limit`; its Link header says where the next slice continues.

The stream is made in steps. Before each step the reader waits for its turn (`relay.memory.streams`).
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import IO

import msgspec

from localstore.core import seal as kernel
from localstore.core.encoding import b64u, is_hex_digest
from localstore.core.errors import NotFound
from localstore.core.model.limits import HISTORY_PACK_DEFAULT, HISTORY_PACK_LINES, MIB
from localstore.core.model.seal import SealChange
from localstore.core.tree import TreeEntry
from relay.base.threads import run_on_thread
from relay.caller import View
from relay.db.seal import SealRow
from relay.domain.history import sealed
from relay.domain.history.files import wire_entry
from relay.domain.history.history import load_seals, walk
from relay.domain.history.wire import to_wire
from relay.http.routing import Reply
from relay.memory.tarred import end_of_tar, header_of, padding_of
from relay.memory.trees import MANY

PIECE = 256 * 1024
STEP_BYTES, STEP_FILES = 1 * MIB, 1000  # that one turn goes through
LEASED, BLOB_BYTES = 10_000, 400  # files to send that are counted together, and bytes in memory of one
_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True)
class _Manifest:
    """The file `manifest.jsonl` of a slice while it is made, and the files to send after it. `file`: a
    temporary file. `lines`: number of seals. `listed`: number of files of the first tree. `size`: bytes.
    `blobs`: files to send, by digest. `pending`, `held`: parts that are not written to `file` yet, and their
    bytes. `leased`: for how many blobs memory is reserved."""

    file: IO[bytes]
    lines: int = 0
    listed: int = 0
    size: int = 0
    blobs: dict[bytes, TreeEntry] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    held: int = 0
    leased: int = LEASED

    async def lease(self, view: View) -> None:
        """Reserve memory for the entries of LEASED (a fixed number) more files to send."""
        await view.lease.wait(LEASED * BLOB_BYTES)
        self.leased += LEASED

    async def write(self, data: bytes) -> None:
        self.pending.append(data)
        self.held += len(data)
        self.size += len(data)
        if self.held >= PIECE:
            await self.flush()

    async def flush(self) -> None:
        data, self.pending, self.held = b"".join(self.pending), [], 0
        await run_on_thread(self.file.write, data)


async def history_pack(view: View, start: str | None, limit: int | None, skip: int | None) -> Reply:
    """Send a slice of the history as a tar stream: seals, newest first, and the files that they added.
    `start`: the seal at which the history begins; None means the head of the default branch. `skip`: how many
    of the newest seals to skip. `limit`: how many seals to send at most."""
    sealed.require_plaintext(view)
    view.node.streams.require(view.payer)
    size, skip = _find_slice(limit, skip)
    if start is not None and not is_hex_digest(start):
        raise NotFound
    async with view.read(snapshot=True) as tx:
        head = start or await sealed.find_head(view, tx, view.repo.default_branch)
        if head is None:
            raise NotFound
        before = min(skip, 1)  # the seal before the slice, whose files the reader has already
        ids = await walk(tx, view, head, skip - before, before + size + 1)
        rows = await load_seals(tx, view, ids[: before + size])
    manifest = await _make_manifest(view, rows[before:], rows[0] if before and rows else None)
    more = len(ids) > before + manifest.lines
    length = 512 + manifest.size + len(padding_of(manifest.size))
    length += sum(
        len(_encode_head(file)) + file.size + len(padding_of(file.size)) for file in manifest.blobs.values()
    )
    headers = {"link": _next(view, head, size, skip + manifest.lines)} if more else {}
    return Reply(
        stream=_stream(view, manifest, length),
        length=length + len(end_of_tar(length)),
        content_type="application/x-tar",
        headers=headers,
    )


def _find_slice(limit: int | None, skip: int | None) -> tuple[int, int]:
    return HISTORY_PACK_DEFAULT if limit is None else limit, skip or 0


def _next(view: View, head: str, limit: int, skip: int) -> str:
    path = f"/api/v1/repos/{view.repo.id}/history-pack"
    return f'<{path}?from={head}&limit={limit}&skip={skip}>; rel="next"'


async def _make_manifest(view: View, rows: list[SealRow], before: SealRow | None) -> _Manifest:
    manifest = _Manifest(tempfile.SpooledTemporaryFile(max_size=MIB))  # noqa: SIM115 - closed by the stream
    try:
        if rows:
            await _write_first_line(view, manifest, rows[0], before)
        enough = manifest.size + HISTORY_PACK_LINES
        for before_it, row in itertools.pairwise(rows):
            if manifest.size > enough:
                break  # side branches with large trees take turns in the walk: each line may change all files
            await _write_line(view, manifest, row, before_it)
        await manifest.flush()
    except BaseException:
        manifest.file.close()
        raise
    return manifest


async def _write_first_line(view: View, manifest: _Manifest, row: SealRow, before: SealRow | None) -> None:
    whole = _view_members(view)
    if sealed.shows_all(view):
        whole |= await _to_key(view, row)
    await manifest.write(_open_line(view, row, whole) + b',"tree":[')
    async with contextlib.aclosing(sealed.walk_files(view, row.root)) as files:
        while await _write_files(view, manifest, files, named=before is None):
            pass
    await manifest.write(b"]}\n")
    manifest.lines += 1
    if before is not None:
        changed = await sealed.changes_in_turn(view, before.root, row.root)
        sent = {old.digest for old, _ in changed.values() if old is not None}
        for _, new in changed.values():
            _add_blob(manifest, new if new is not None and new.digest not in sent else None)


async def _write_files(
    view: View, manifest: _Manifest, files: AsyncIterator[tuple[str, TreeEntry]], named: bool
) -> bool:
    """Write the next entries of the slice's first tree into the manifest, as many as fit into one turn.
    `named`: whether the bytes of these files are sent too. Returns False at the end."""
    count = 0
    async with view.node.streams.turn(view.payer, view.lease) as step:
        async for path, file in files:
            comma = b"," if manifest.listed else b""
            await manifest.write(comma + _ENCODER.encode(wire_entry(path, file)))
            manifest.listed += 1
            if named:
                manifest.blobs.setdefault(file.digest, file)
            count += 1
            if count >= STEP_FILES:
                break
        step.count(count)
    while len(manifest.blobs) >= manifest.leased:
        await manifest.lease(view)
    return count > 0


async def _write_line(view: View, manifest: _Manifest, row: SealRow, before: SealRow) -> None:
    changed = await sealed.changes_in_turn(view, before.root, row.root)
    brought = {path: file for path, (_, file) in changed.items()}
    for file in brought.values():
        _add_blob(manifest, file)
    while len(manifest.blobs) >= manifest.leased:
        await manifest.lease(view)
    listed = (
        await run_on_thread(_encode_changes, brought) if len(brought) > MANY else _encode_changes(brought)
    )
    members = _view_members(view)
    if sealed.shows_all(view) and _key_id(row) != _key_id(before):
        members |= await _to_key(view, row)
    await manifest.write(_open_line(view, row, members) + b',"changes":' + listed + b"}\n")
    manifest.lines += 1


def _key_id(row: SealRow) -> str:
    return kernel.decode(row.payload).tree_key_id


async def _to_key(view: View, row: SealRow) -> dict[str, object]:
    key_id, key = await sealed.tree_key(view, row)
    return {"tree_key": b64u(key), "tree_key_id": key_id}


def _view_members(view: View) -> dict[str, object]:
    return {"filtered": not sealed.shows_all(view)}


def _encode_changes(brought: dict[str, TreeEntry | None]) -> bytes:
    listed = [
        SealChange(path=path, kind=file.kind, digest=file.digest.hex(), size=file.size)
        if file
        else SealChange(path=path, kind=None)
        for path, file in brought.items()
    ]
    return msgspec.json.encode(listed)


def _add_blob(manifest: _Manifest, file: TreeEntry | None) -> None:
    if file is not None:
        manifest.blobs.setdefault(file.digest, file)


def _encode_head(file: TreeEntry) -> bytes:
    return header_of(f"blobs/{file.digest.hex()}", file.size)


def _open_line(view: View, row: SealRow, more: dict[str, object]) -> bytes:
    """The seal as JSON, with the fields `more` and without the closing brace."""
    return _ENCODER.encode(to_wire(row, view.repo.id))[:-1] + b"," + _ENCODER.encode(more)[1:-1]


async def _stream(view: View, manifest: _Manifest, length: int) -> AsyncIterator[bytes]:
    try:
        yield header_of("manifest.jsonl", manifest.size)
        manifest.file.seek(0)
        while data := await run_on_thread(manifest.file.read, PIECE):
            yield data
        yield padding_of(manifest.size)
        files = list(manifest.blobs.values())
        async with contextlib.aclosing(sealed.read_contents(view, files)) as pieces:
            while data := await _read_members(view, files, pieces):
                yield data
        yield end_of_tar(length)
    finally:
        manifest.file.close()


async def _read_members(view: View, files: list[TreeEntry], pieces: AsyncIterator[sealed.Piece]) -> bytes:
    """The next files as members of the tar stream, as many as fit into one turn; b"" at the end."""
    parts: list[bytes] = []
    size = 0
    async with view.node.streams.turn(view.payer, view.lease) as step:
        async for piece in pieces:
            file = files[piece.at]
            before = _encode_head(file) if piece.first else b""
            parts.append(before + piece.data + (padding_of(file.size) if piece.last else b""))
            size += len(piece.data)
            if size >= STEP_BYTES or len(parts) >= sealed.BATCH_FILES:
                break
        step.count(2 * len(parts), size)  # twice: their headers are written here
    return b"".join(parts)
