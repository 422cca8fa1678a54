"""Decides whether a file is text or binary: it is text if it is valid UTF-8 without NUL and has at most
TEXT_FILE bytes."""

from __future__ import annotations

import codecs
from typing import Literal, NamedTuple

from blake3 import blake3

from localstore.core.model.limits import TEXT_FILE

Kind = Literal["text", "blob"]
Bytes = bytes | bytearray | memoryview


class Classified(NamedTuple):
    """Kind, size and digest of a file. `kind`: text or blob; `size`: bytes; `blake3`: BLAKE3 of its content,
    32 bytes."""

    kind: Kind
    size: int
    blake3: bytes


class Classifier:
    """Finds out kind, size and digest of a file in one pass over its bytes, which are fed in chunks.

    >>> classifier = Classifier()
    >>> classifier.feed(b"hello")
    >>> classifier.result().kind
    'text'"""

    def __init__(self) -> None:
        self._hash = blake3()
        self._size = 0
        self._text = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")

    def feed(self, chunk: Bytes) -> None:
        """Add the next bytes, which may end inside a character."""
        self._hash.update(chunk)
        self._size += len(chunk)
        if self._text:
            self._text = self._size <= TEXT_FILE and self._decodes(bytes(chunk))

    def result(self) -> Classified:
        """Kind, size and digest of all bytes that were fed. An incomplete character at the end makes the file
        binary."""
        pending, _ = self._decoder.getstate()
        kind: Kind = "text" if self._text and not pending else "blob"
        return Classified(kind, self._size, self._hash.digest())

    def _decodes(self, chunk: bytes) -> bool:
        if b"\0" in chunk:
            return False
        try:
            self._decoder.decode(chunk)
        except UnicodeDecodeError:
            return False
        return True


def classify(data: Bytes) -> Classified:
    """Kind, size and digest of a file given as bytes."""
    return Classified(kind_of(data), len(data), blake3(data).digest())


def kind_of(data: Bytes) -> Kind:
    """The kind of a file given as bytes; the empty file is text."""
    if len(data) > TEXT_FILE:
        return "blob"
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        return "blob"
    return "blob" if "\0" in text else "text"
