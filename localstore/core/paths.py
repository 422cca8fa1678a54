"""Path safety: which paths a repository may contain, which names only some systems can store, and how names
are displayed.

A path is relative UTF-8 text with `/` between segments. `check` refuses paths that could leave a folder,
reach the metadata of git or svc on any file system, or deceive a reader. A name that only some systems can
store (`CON`, `a.`, names that differ only in case) is valid, and `portability` warns about it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from localstore.core.encoding import hex_digest
from localstore.core.errors import Invalid, PathInvalid
from localstore.core.model.limits import PATH_BYTES, PATH_DEPTH, PATH_SEGMENT_BYTES

RESERVED = frozenset({".git", ".svc", ".oxen"})  # metadata folders; never part of a tree, at any depth
TEMPORARY = re.compile(r"\.svc-[0-9a-f]{16}\.tmp")  # what svc writes beside people's files before a rename
OWN_FOLDER_TEXT = (  # of the file `.svc` that marks a data folder of svc or of a relay
    b"This folder holds keys and records of svc. Because of this file no repository takes them.\n"
)
PROSE = (
    "\n\t\u200c\u200d"  # what `terminal_safe` may keep in running text: emoji and Persian need the joiners
)

_SHORT_NAME = re.compile(r"(?:git|svc|oxen)~[0-9]+")  # 8.3 aliases that Windows gives to the reserved names
_DEVICE_NAMES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "123456789¹²³"}
)
_UNHOLDABLE = re.compile(r'[<>:"|?*]')
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Code points that file systems (HFS+) or readers' eyes skip, beside the whole category Cf: first and last
# of each range.
_IGNORABLE = (
    ("\u034f", "\u034f"),
    ("\u115f", "\u1160"),
    ("\u17b4", "\u17b5"),
    ("\u180b", "\u180d"),
    ("\u180f", "\u180f"),
    ("\u3164", "\u3164"),
    ("\uffa0", "\uffa0"),
    ("\ufe00", "\ufe0f"),
    ("\U000e0000", "\U000e0fff"),
)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_TAG = 8  # hex digits of a path's digest that keep shortened names distinct


def check(path: str) -> str:
    """Check a path and return it unchanged. Raises PathInvalid, with the reason, unless it is safe on every
    system."""
    fault = _shape_fault(path) or next(filter(None, map(_segment_fault, path.split("/"))), None)
    if fault:
        raise PathInvalid(f"path {_quote(path)} is refused: {fault}")
    return path


def parents(path: str) -> list[str]:
    """Directories above the path, topmost first: `a/b/c` → `["a", "a/b"]`."""
    above = []
    at = path.find("/")
    while at >= 0:
        above.append(path[:at])
        at = path.find("/", at + 1)
    return above


def is_inside(path: str, directory: str) -> bool:
    """Whether the path is the directory or below it; `""` is the root."""
    return not directory or path == directory or path.startswith(directory + "/")


def case_key(path: str) -> str:
    """A key by which paths are compared. Two paths have the same key if a file system that ignores case, or
    that normalises Unicode, takes them for the same path (Unicode D145)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def case_collisions(paths: Iterable[str]) -> dict[str, str]:
    """The paths that a case-insensitive file system would confuse with others. Maps each such path to the
    earlier file or folder that it collides with; the earlier path itself is not in the result."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    collisions: dict[str, str] = {}
    for path in paths:
        key = case_key(path)
        above = [(case_key(folder), folder) for folder in parents(path)]
        holder = files.get(key) or folders.get(key)
        for folded, folder in above:
            holder = holder or files.get(folded)
            spelling = folders.get(folded, folder)
            holder = holder or (spelling if spelling != folder else None)
        if holder is not None:
            collisions[path] = holder
            continue
        files[key] = path
        folders.update(above)
    return collisions


def portability(path: str) -> list[str]:
    """Warnings about the segments of a valid path that some systems cannot store; [] if all systems can."""
    warnings = [
        f"{_quote(segment)} {fault}"
        for segment in dict.fromkeys(path.split("/"))
        if (fault := _windows_fault(segment))
    ]
    if not unicodedata.is_normalized("NFC", path):
        warnings.append(f"{_quote(path)} is not in Unicode form NFC; some systems rename it")
    return warnings


def conflict_name(path: str, when: datetime, device_key_id: str, outside: str | None = None) -> str:
    """The path of a conflict copy: `<stem>.sync-conflict-YYYYMMDD-HHMMSS-<id7>.ext`, where `id7` is the start
    of `device_key_id`.

    `when` must have a time zone and is written in UTC. The result is always a valid path: a long stem is
    shortened and tagged with the digest of the path. If the folder's path leaves too little space for the
    name, the copy is put into a folder above it. `outside`: a directory that a file replaces, so the copy
    must not be in it."""
    if when.tzinfo is None:
        raise ValueError("when has no time zone")
    if not re.fullmatch(r"[A-Za-z0-9_-]{7,}", device_key_id):
        raise Invalid("a device key id is base64url text")
    mark = f".sync-conflict-{when.astimezone(UTC):%Y%m%d-%H%M%S}-{device_key_id[:7]}"
    folder, _, name = path.rpartition("/")
    tag = "~" + hex_digest(path.encode())[:_TAG]
    lifted = False
    while folder and (
        PATH_BYTES - len(folder.encode()) - 1 < len(mark) + len(tag) + 1
        or (outside is not None and is_inside(folder, outside))
    ):
        folder, _, above = folder.rpartition("/")
        name, lifted = above + "_" + name, True
    room = min(PATH_SEGMENT_BYTES, PATH_BYTES - (len(folder.encode()) + 1 if folder else 0)) - len(mark)
    stem, ext = _split_name(name)
    if len(ext.encode()) + len(tag) + 1 > room:
        stem, ext = name, ""
    room -= len(ext.encode())
    if lifted or len(stem.encode()) > room:
        stem = _cut(stem, room - len(tag)) + tag
    return (folder + "/" if folder else "") + stem + mark + ext


def terminal_safe(text: str, keep: str = "") -> str:
    r"""The text with control, escape, bidirectional and invisible characters escaped, as `\x1b` or `\u202e`.

    `keep`: characters that stay as they are: none in names, `PROSE` in messages."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or not _is_hidden(c) else _escape(c) for c in text)


def _shape_fault(path: str) -> str | None:
    if not path:
        return "it is empty"
    if path[0] == "/":
        return "it is absolute"
    try:
        size = len(path) if path.isascii() else len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > PATH_BYTES:
        return f"it is longer than {PATH_BYTES} bytes"
    if path.count("/") >= PATH_DEPTH:
        return f"it is deeper than {PATH_DEPTH} segments"
    return None


@lru_cache(maxsize=1 << 16)
def _segment_fault(segment: str) -> str | None:
    if not segment:
        return "it has an empty segment"
    if segment in (".", ".."):
        return f"it has the segment '{segment}'"
    if len(segment.encode("utf-8")) > PATH_SEGMENT_BYTES:
        return f"a segment is longer than {PATH_SEGMENT_BYTES} bytes"
    if not (segment.isascii() and segment.isprintable()) or "\\" in segment:
        for char in segment:
            if fault := _character_fault(char):
                return fault
    folded = _fold_case(segment)
    if folded.rstrip(" ") in (".", ".."):
        return f"a segment can be read as '{folded.strip()}'"
    # NTFS cuts an alternate stream at ':' and drops trailing dots and spaces.
    plain = folded.partition(":")[0].rstrip(" .")
    if plain in RESERVED or _SHORT_NAME.fullmatch(plain):
        return f"{_quote(segment)} is, or can be read as, a metadata folder ({', '.join(sorted(RESERVED))})"
    return None


def _character_fault(char: str) -> str | None:
    if char == "\0":
        return "it holds a NUL character"
    if char == "\\":
        return "it holds a backslash"
    if unicodedata.category(char) in ("Cc", "Zl", "Zp"):
        return "it holds a control character"
    if char in _BIDI:
        return "it holds a character that changes the direction of text"
    return None


def _fold_case(segment: str) -> str:
    """The form of a segment of a path by which segments are compared: it is equal for two segments that some
    file system takes for the same name. It removes differences of case, Unicode form and invisible
    characters."""
    if not segment.isascii():
        segment = "".join(c for c in segment if not _is_ignorable(c))
        segment = unicodedata.normalize("NFKC", segment)
        # Upper before fold: a dotless ı and the long ſ then meet i and s.
        segment = "".join(c for c in segment.upper().casefold() if not _is_ignorable(c))
        return unicodedata.normalize("NFKC", segment)
    return segment.lower()


def _is_ignorable(char: str) -> bool:
    return _is_skipped(char) or unicodedata.category(char) == "Cf"


def _is_skipped(char: str) -> bool:
    return any(first <= char <= last for first, last in _IGNORABLE)


def _is_device(segment: str) -> bool:
    return segment.partition(".")[0].rstrip(" ").lower() in _DEVICE_NAMES


def _windows_fault(segment: str) -> str | None:
    if _is_device(segment):
        return "is a device name on Windows"
    if segment[-1:] in (".", " "):
        return "ends in a dot or space, which Windows drops"
    if _UNHOLDABLE.search(segment):
        return "has a character that Windows refuses"
    return None


def _split_name(name: str) -> tuple[str, str]:
    """(stem, extension with its dot) of a file name. A dot at the start or at the end of the name does not
    begin an extension."""
    stem, dot, ext = name.rpartition(".")
    if not stem.strip(".") or not ext:
        return name, ""
    return stem, dot + ext


def _cut(text: str, size: int) -> str:
    """The longest beginning of the text that has at most `size` bytes in UTF-8."""
    return text.encode("utf-8")[: max(size, 0)].decode("utf-8", "ignore")


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or _is_skipped(char)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _quote(text: str) -> str:
    safe = terminal_safe(text)
    return f"'{safe}'" if len(safe) <= 200 else f"'{safe[:200]}…'"
