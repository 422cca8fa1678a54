"""Ids of git objects, and the bytes of a git commit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Literal

Kind = Literal["commit", "tree", "blob"]
ID_BYTES = 20
EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

_NOT_IN_PERSON = re.compile(r"[\x00-\x1f\x7f<>]+")
_TRIMMED = " .,:;\"\\'"  # git cuts these from both ends of a name
_WITH_EMAIL = re.compile(r"([^<>]*)<([^<>]*)>(.*)", re.DOTALL)
_TIME = re.compile(r" ?(0|[1-9][0-9]{0,17}) ([+-][0-9]{4})")


def header(kind: Kind, size: int) -> bytes:
    """The bytes that git puts before the content (`size` bytes) of an object to compute its id."""
    return b"%s %d\0" % (kind.encode(), size)


def object_id(kind: Kind, data: bytes) -> bytes:
    """The id of an object: 20 bytes."""
    return hashlib.sha1(header(kind, len(data)) + data, usedforsecurity=False).digest()


def person(name: str, email: str) -> str:
    """A person as commits name one: `NAME <EMAIL>`. Characters that git does not allow are left out; if
    nothing is left of the name, it is `unknown`."""
    clean_name = _NOT_IN_PERSON.sub(" ", name).strip(_TRIMMED) or "unknown"
    return f"{clean_name} <{_NOT_IN_PERSON.sub('', email).replace(' ', '')}>"


def format_signature(who: str, seconds: int) -> str:
    """The value of `author` or `committer` in a commit. `who`: the person, as `person` returns it; `seconds`:
    the time in UTC (Unix)."""
    return f"{who} {max(0, seconds)} +0000"


def author(text: str, seconds: int) -> str:
    """The value of `author` in a commit, from text that a user wrote: `NAME`, `NAME <EMAIL>` or a whole
    author line with time and zone. `seconds`: the time to use if the text has none."""
    matched = _WITH_EMAIL.fullmatch(text)
    if matched is None:
        return format_signature(person(text, ""), seconds)
    who = person(matched[1], matched[2])
    moment = _TIME.fullmatch(matched[3])
    return format_signature(who, seconds) if moment is None else f"{who} {moment[1]} {moment[2]}"


def commit(tree: bytes, parents: Sequence[bytes], author: str, committer: str, message: str) -> bytes:
    """The bytes of a commit. `tree` and `parents`: ids of 20 bytes; `author` and `committer`: lines as made
    by `format_signature`. The message ends with a line break."""
    lines = [f"tree {tree.hex()}", *(f"parent {parent.hex()}" for parent in parents)]
    lines += [f"author {author}", f"committer {committer}", "", message.replace("\0", " ")]
    raw = "\n".join(lines).encode("utf-8", "replace")
    return raw if raw.endswith(b"\n") else raw + b"\n"
