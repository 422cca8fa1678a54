"""What is shown of a file that is not a text: its kind, its first bytes, and where it can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localstore.core.model.history import Blob
from svc.console.table import size
from tui.text import Part, safe

SHOWN, ROW = 192, 16  # bytes that are shown, and those of one row
# How files of a kind begin.
BEGINNINGS = (
    (b"\x89PNG\r\n", "PNG picture"),
    (b"\xff\xd8\xff", "JPEG picture"),
    (b"GIF8", "GIF picture"),
    (b"GGUF", "GGUF model"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"%PDF", "PDF"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg"),
    (b"fLaC", "FLAC"),
    (b"ID3", "MP3"),
    (b"\x93NUMPY", "NumPy array"),
    (b"PAR1", "Parquet table"),
)

Row = tuple[Part, ...]


def rows_of_bytes(blob: Blob, full_name: str, folder: Path | None) -> list[Row]:
    """Returns rows about a file that is not a text. `full_name`: the repository. `folder`: the folder of this
    machine that is linked to it, None if there is none."""
    begin = _first_bytes(blob)
    kind = next((f" · {name}" for magic, name in BEGINNINGS if begin.startswith(magic)), "")
    local = folder / blob.path if folder is not None else None
    if local is not None and local.is_file():
        where: Row = (("in this folder  ", "dim"), (safe(blob.path), "text"))
    else:
        where = (("to have it here  ", "dim"), (f"svc repo clone {safe(full_name)}", "accent"))
    keys: Row = (("y", "accent"), (" copies its path   ", "dim"), ("h", "accent"), (" history", "dim"))
    rows: list[Row] = [((f"{size(blob.size)} · not text{kind}", "text"),), where, keys]
    return [*rows, (), *_dump(begin, blob.size)] if begin else rows


def _first_bytes(blob: Blob) -> bytes:
    from base64 import b64decode
    from binascii import Error

    try:
        return b64decode((blob.content or "")[: SHOWN // 3 * 4]) if blob.encoding == "base64" else b""
    except Error:
        return b""


def _dump(begin: bytes, whole: int) -> Sequence[Row]:
    """Returns rows with bytes in hexadecimal and as characters. `whole`: the bytes of the file."""
    rows: list[Row] = []
    for at in range(0, len(begin), ROW):
        part = begin[at : at + ROW]
        digits = f"{part[:8].hex(' ')}  {part[8:].hex(' ')}"
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in part)
        rows.append(((f"{at:06x}  ", "gutter"), (f"{digits:<{3 * ROW}}  ", "text"), (letters, "dim")))
    if whole > len(begin):
        rows.append(((f"… {size(whole - len(begin))} more", "dim"),))
    return rows
