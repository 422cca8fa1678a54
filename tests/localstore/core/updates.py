"""Hand-made lane updates, honest and hostile, for the tests of the reader and of the lane."""

from __future__ import annotations

from collections.abc import Iterable

from localstore.core.lane.reader import varints
from localstore.core.lane.update_format import ROOT, Deletion, Struct

ORIGIN, RIGHT_ORIGIN = 0x80, 0x40


def varint(number: int) -> bytes:
    return varints([number])


def encode(structs: Iterable[Struct], deletions: Iterable[Deletion] = ()) -> bytes:
    """The update that `lane_format.parse` reads back, whatever it says."""
    parts = [_groups([(s.client, s.clock, _struct(s)) for s in structs], with_clock=True)]
    parts.append(_groups([(d.client, 0, varint(d.clock) + varint(d.length)) for d in deletions], False))
    return b"".join(parts)


def inserted(
    client: int,
    clock: int,
    text: str,
    origin: tuple[int, int] | None = None,
    right_origin: tuple[int, int] | None = None,
) -> Struct:
    return Struct(client, clock, len(text.encode("utf-16-le")) // 2, origin, right_origin, text.encode())


def scattered(client: int, letters: str) -> bytes:
    """A state in which every letter is an item of its own, the last one first."""
    return encode([inserted(client, clock, letter) for clock, letter in enumerate(letters)])


def group(client: int, clock: int, *structs: bytes) -> bytes:
    return varint(len(structs)) + varint(client) + varint(clock) + b"".join(structs)


def raw_struct(kind: int, content: bytes, root: str = ROOT) -> bytes:
    """A struct without origins, of any kind, in a root of any name."""
    return bytes([kind]) + varint(1) + varint(len(root)) + root.encode() + content


def _struct(struct: Struct) -> bytes:
    kind = 1 if struct.text is None else 4
    flags = (ORIGIN if struct.origin else 0) | (RIGHT_ORIGIN if struct.right_origin else 0)
    points = b"".join(varint(n) for p in (struct.origin, struct.right_origin) if p for n in p)
    parent = b"" if flags else varint(1) + varint(len(ROOT)) + ROOT.encode()
    content = varint(struct.length) if struct.text is None else varint(len(struct.text)) + struct.text
    return bytes([kind | flags]) + points + parent + content


def _groups(entries: list[tuple[int, int, bytes]], with_clock: bool) -> bytes:
    clients: dict[int, list[tuple[int, bytes]]] = {}
    for client, clock, body in entries:
        clients.setdefault(client, []).append((clock, body))
    parts = [varint(len(clients))]
    for client, bodies in clients.items():
        head = [len(bodies), client, bodies[0][0]] if with_clock else [client, len(bodies)]
        parts += [*map(varint, head), *(body for _, body in bodies)]
    return b"".join(parts)
