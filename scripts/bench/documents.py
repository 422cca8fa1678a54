"""Measures what it costs to open a document that was edited many times: on a relay, by `svc doc view`, and as
a document of this device.

    python -m scripts.bench.documents [EDITS] [text]

Each edit sets the state of one of 40 tasks or, with `text`, replaces one word of a text of 300 words. The
CRDT library would walk through everything that was ever in the text for each edit. So this script encodes the
new words itself, and the library only reads them. At every 500th edit the old updates are joined to one, as
in normal use. With the default number of edits, almost 500 more have followed, and the last PUT that is
measured joins them. CPU of the relay is that of its process tree; with PostgreSQL (TEST_DATABASE=postgres)
the database is not counted. Times are means of 20 rounds.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from localstore.core.document.content import encode
from localstore.core.document.document import YjsDocument
from localstore.core.document.edit import HEAD_WRITER, StoredUpdate, plan
from localstore.core.lane.reader import varints
from localstore.core.model.document import DocumentCreate
from localstore.core.model.limits import DOCUMENT_UPDATES
from localstore.documents import FILE, LocalDocuments
from scripts.bench.shared.cpu import Cost, run, serving
from scripts.bench.shared.servers import relay_in
from tests import databases

TASKS, WORDS, ROUNDS = 40, 300, 20
EDITS = 100_000 + DOCUMENT_UPDATES - ROUNDS - 1
TEXT_BETWEEN = 0x80 | 0x40 | 4  # an item of text that names the one before and the one behind it
Stored = list[tuple[StoredUpdate, int]]
"""The updates of a document, each with the number of the first edit in it."""


class Written(NamedTuple):
    """A document that was edited many times, as it is stored."""

    edits: int
    content: Any
    updates: Stored


class Tasks:
    """A document with a map of tasks. Each edit sets the state of one task, by the code that the relay
    uses."""

    def __init__(self) -> None:
        self._drawn, self._states = random.Random(1), dict[str, str]()
        self._document = YjsDocument(HEAD_WRITER)

    def edit(self, number: int) -> bytes:
        """Make the edit with this number. Returns the encoded operations."""
        self._states[f"task{self._drawn.randrange(TASKS)}"] = f"w{number}"
        return self._document.write(self._states)

    def content(self) -> Any:
        return self._states


class Words:
    """A document with a text of words. Each edit replaces one word: it inserts a new word between the old one
    and the next space, and deletes the old one. The class encodes the CRDT items itself, which takes less
    time than the CRDT library."""

    def __init__(self) -> None:
        self._drawn, self._words = random.Random(1), [f"word{at}" for at in range(WORDS)]
        ends = [len(" ".join(self._words[: at + 1])) for at in range(WORDS)]
        # The map and the text are the first two items, the characters come next.
        self._spaces = [end + 2 for end in ends]
        self._places = [end + 2 - len(word) for end, word in zip(ends, self._words, strict=True)]
        self._clock = ends[-1] + 2

    def edit(self, number: int) -> bytes:
        """Make the edit with this number. The first edit writes the whole text. Returns the encoded
        operations."""
        if number == 1:
            return YjsDocument(HEAD_WRITER).write(self.content())
        at = self._drawn.randrange(WORDS - 1)  # no space follows the last one
        start, length, word = self._places[at], len(self._words[at]), f"w{number}"
        head = varints([1, 1, HEAD_WRITER, self._clock])
        between = varints([HEAD_WRITER, start + length - 1, HEAD_WRITER, self._spaces[at]])
        item = bytes([TEXT_BETWEEN]) + between + varints([len(word)]) + word.encode()
        self._words[at], self._places[at] = word, self._clock
        self._clock += len(word)
        return head + item + varints([1, HEAD_WRITER, 1, start, length])

    def content(self) -> Any:
        return {"text": " ".join(self._words)}


def write(edits: int, as_text: bool) -> Written:
    """Make a document by `edits` edits. `as_text`: make a text of words instead of a map of tasks."""
    written, updates = Words() if as_text else Tasks(), list[tuple[StoredUpdate, int]]()
    for number in range(1, edits + 1):
        operations = written.edit(number)
        joined = plan(None, [update for update, _ in updates], number - 1, number).joined
        if joined:
            snapshot = YjsDocument(HEAD_WRITER, [update.operations for update, _ in updates[:joined]]).state()
            last, _ = updates[joined - 1]
            updates[:joined] = [(StoredUpdate(last.number, snapshot), updates[0][1])]
        updates.append((StoredUpdate(number, operations), number))
    return Written(edits, written.content(), updates)


def rows_of(document: str, written: Written, created_at: object) -> list[tuple[object, ...]]:
    """The rows of the table `document_update` for the document. The table has the same columns on a relay and
    on a device."""
    return [
        (document, update.number, first, max(0, first - 1), update.operations, created_at)
        for update, first in written.updates
    ]


def store(url: str, document: str, written: Written, created_at: object) -> None:
    """Replace the updates of a document in the database `url` with those in `written`."""
    databases.rows(url, "DELETE FROM document_update WHERE document_id = ?", document)
    columns = "(document_id, number, first, base, operations, created_at)"
    for row in rows_of(document, written, created_at):
        databases.rows(url, f"INSERT INTO document_update {columns} VALUES (?, ?, ?, ?, ?, ?)", *row)
    change = "UPDATE document SET head = ?, content = ? WHERE id = ?"
    databases.rows(url, change, written.edits, encode(written.content), document)


def show(what: str, cpu: float, wall: float) -> None:
    print(f"{what:<44} CPU {cpu * 1000:7.1f} ms   wall {wall * 1000:7.1f} ms", flush=True)


def mean(work: Callable[[], object]) -> tuple[float, float]:
    """Call `work` ROUNDS times. Returns the mean (CPU seconds, wall seconds) of this process for one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(ROUNDS):
        work()
    return (time.process_time() - cpu) / ROUNDS, (time.perf_counter() - wall) / ROUNDS


def measure_here(base: Path, written: Written) -> None:
    """Measure reading the operations, and opening the document when it is stored on this device only."""
    operations: Sequence[bytes] = [update.operations for update, _ in written.updates]
    opened = YjsDocument(HEAD_WRITER, operations).content()
    if opened != written.content:
        raise SystemExit("the document is not what was written")
    show("its operations read and applied", *mean(lambda: YjsDocument(HEAD_WRITER, operations).content()))
    place = LocalDocuments(base / FILE)
    document = place.create(DocumentCreate(title="Many", mode=1, content={})).id
    place.close()
    store(f"sqlite:///{base / FILE}", document, written, "2026-01-01T00:00:00.000Z")
    place = LocalDocuments(base / FILE)
    show("document of a device, read", *mean(lambda: place.get(document)))
    place.close()
    environment = {**os.environ, "SVC_HOME": str(base)}
    viewing = [sys.executable, "-m", "svc", "doc", "view", document]
    costs = [run(viewing, base, environment) for _ in range(ROUNDS)]
    cpu, wall = sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs)
    show("svc doc view of it, with the start of svc", cpu / ROUNDS, wall / ROUNDS)


def measure_relay(base: Path, written: Written) -> None:
    os.environ |= databases.variables(base)
    with relay_in(base) as svc:
        address = svc.environment["SVC_SERVER"]
        url = os.environ.get("DATABASE_URL") or f"sqlite:///{next((base / 'relay').rglob('relay.db'))}"
        with httpx.Client(base_url=address, trust_env=False, timeout=60, headers={"Origin": address}) as http:
            http.post("/auth/guest-login").raise_for_status()
            body = {"title": "Many", "content": {}}
            document = http.post("/api/v1/documents", json=body).raise_for_status().json()["id"]
            store(url, document, written, 0)
            path = f"/api/v1/documents/{document}"
            if http.get(path).raise_for_status().json()["content"] != written.content:
                raise SystemExit("the relay does not answer what was written")
            cost = Cost()
            with serving(svc.pid, cost):
                _, wall = mean(lambda: http.get(path).raise_for_status())
            show("GET", cost.cpu / ROUNDS, wall)
            edited = iter(range(written.edits, written.edits + ROUNDS + 1))

            def change() -> None:
                content = {**written.content, "more": next(edited)}
                http.put(path, json={"content": content}).raise_for_status()

            cost = Cost()
            with serving(svc.pid, cost):
                _, wall = mean(change)
            show("PUT of one more edit", cost.cpu / ROUNDS, wall)
            if (written.edits + ROUNDS + 1) % DOCUMENT_UPDATES == 0:
                cost, began = Cost(), time.perf_counter()
                with serving(svc.pid, cost):
                    change()
                show(f"PUT that joins {DOCUMENT_UPDATES} updates", cost.cpu, time.perf_counter() - began)


def main(edits: str = str(EDITS), kind: str = "") -> int:
    written = write(int(edits), kind == "text")
    size = sum(len(update.operations) for update, _ in written.updates)
    print(f"{edits} edits in {len(written.updates)} updates of {size} bytes")
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        measure_here(Path(folder), written)
        measure_relay(Path(folder), written)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
