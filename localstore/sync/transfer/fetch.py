"""Fetches objects from the relay in as many requests as are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from localstore.core.errors import DigestMismatch, Invalid, ServerMisbehaved
from localstore.core.model.limits import MIB
from localstore.core.storage.pack import Frame, PackReader
from localstore.record.objects import Objects
from localstore.sync.transfer.transport import Transport

FETCH_BYTES = 32 * MIB  # announced size of the objects asked for at once
FETCH_OBJECTS = 4096


def fetch(
    transport: Transport, keep: Objects | None, sizes: Mapping[bytes, int]
) -> Iterator[tuple[bytes, bytes]]:
    """Yields verified objects (digest, bytes), each once. Objects that the relay does not send are left out.
    `keep`: the store for the received frames (compressed blocks of objects), None to store nothing.
    `sizes`: the digests of the requested objects, with their sizes in bytes, which decide how the objects
    are divided into requests."""
    group: dict[bytes, None] = {}
    announced = 0
    for digest, size in sizes.items():
        if group and (announced + size > FETCH_BYTES or len(group) == FETCH_OBJECTS):
            yield from _whole_group(transport, keep, group)
            group, announced = {}, 0
        group[digest] = None
        announced += size
    if group:
        yield from _whole_group(transport, keep, group)


def _whole_group(
    transport: Transport, keep: Objects | None, missing: dict[bytes, None]
) -> Iterator[tuple[bytes, bytes]]:
    """Yields (digest, bytes) of the objects in `missing`, and removes each from it. An answer may contain
    only some of the objects. So the request is repeated until all have arrived, or until an answer
    contains none."""
    before = 0
    while missing and len(missing) != before:
        before = len(missing)
        yield from _one_answer(transport, keep, missing)


def _one_answer(
    transport: Transport, keep: Objects | None, missing: dict[bytes, None]
) -> Iterator[tuple[bytes, bytes]]:
    """Yields (digest, bytes) of the objects of one answer, and removes them from `missing`."""
    frames: list[Frame] = []
    for frame, objects in verified_frames(transport.fetch_pack(list(missing))):
        if keep is not None:
            frames.append(frame)
        for name, data in objects:
            if name in missing:
                del missing[name]
                yield name, data
    if keep is not None and frames:
        keep.add_frames(frames)


def verified_frames(pieces: Iterable[bytes]) -> Iterator[tuple[Frame, list[tuple[bytes, bytes]]]]:
    """Yields each frame of a pack that arrives in `pieces`, with its verified objects (digest, bytes). Raises
    ServerMisbehaved for damaged bytes."""
    reader = PackReader()
    try:
        for piece in pieces:
            for frame in reader.feed(piece):
                yield frame, [(name, bytes(data)) for name, data in frame.objects()]
        reader.close()
    except (DigestMismatch, Invalid) as error:
        raise ServerMisbehaved(
            f"the server sent damaged bytes ({error.detail}), and they were not written; try again, and if "
            "it stays so, tell the operator of the server, who runs: relay audit"
        ) from None
