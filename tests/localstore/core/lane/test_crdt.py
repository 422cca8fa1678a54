"""The core of the CRDT library, against the library's own way of using it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from localstore.core.lane.crdt import TextDocument
from localstore.core.lane.update_format import ROOT

WRITER = 7


def by_the_library(steps: list[tuple[int, int, str]]) -> tuple[str, bytes, bytes, list[Any], list[bytes]]:
    """Text, state, state vector, deltas and updates of a document that took these steps."""
    from pycrdt import Doc, Text

    doc: Any = Doc(client_id=WRITER)
    text = doc.get(ROOT, type=Text)
    deltas: list[Any] = []
    updates: list[bytes] = []
    text.observe(lambda event: deltas.append([dict(step) for step in event.delta]))
    doc.observe(lambda event: updates.append(bytes(event.update)))
    for offset, deleted, inserted in steps:
        with doc.transaction():
            if deleted:
                del text[offset : offset + deleted]
            text.insert(offset, inserted)
    return str(text), doc.get_update(), doc.get_state(), deltas, updates


def by_the_core(steps: list[tuple[int, int, str]]) -> tuple[str, bytes, bytes, list[Any], list[bytes]]:
    document = TextDocument(WRITER)
    updates: list[bytes] = []

    def take(offset: int, deleted: int, inserted: str) -> None:
        if deleted:
            document.delete(offset, deleted)
        document.insert(offset, inserted)

    def change() -> None:
        for step in steps:
            updates.append(document.written(lambda step=step: take(*step)))  # type: ignore[misc]

    deltas = document.deltas(change)
    return document.text(), document.state(), document.seen(), deltas, updates


STEPS = [(0, 0, "eins\nzwei\n"), (5, 4, "drei ü 🙂"), (0, 0, "x"), (3, 2, "")]


def test_the_core_writes_what_the_library_writes() -> None:
    assert by_the_core(STEPS) == by_the_library(STEPS)


def test_updates_carry_a_document_to_another() -> None:
    *_, updates = by_the_core(STEPS)
    twin = TextDocument(8)
    for update in updates:
        twin.apply(update)
    assert twin.text() == by_the_core(STEPS)[0]


def test_a_failed_transaction_does_not_stay_open() -> None:
    document = TextDocument(WRITER)
    with pytest.raises(BaseException), document.transaction():  # noqa: B017 - a panic is no Exception
        document.delete(5, 3)
    document.insert(0, "text")
    assert document.text() == "text"


def test_the_core_loads_without_the_package_and_beside_it() -> None:
    script = "import sys; from localstore.core.lane.lane import Lane; Lane.genesis('b', 1, 0, b'text')\n"
    script += "print({'pycrdt', 'anyio', 'asyncio'} & sys.modules.keys() or 'alone')\n"
    script += (
        "import pycrdt; from localstore.core.lane.crdt import core; print(core().Doc is pycrdt._doc._Doc)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["alone", "True"]
