"""What it costs to open a document of many edits: on a relay, by `svc doc view`, and as one of a device.

    python -m scripts.bench.documents [EDITS] [text]

Each edit sets the state of one of 40 tasks, or replaces one word of a text of 300 words. The library walks
through all that was ever in a text: 30,000 such edits are made in a minute, 100,000 take more than a quarter
of an hour. Old updates are joined as in life, by the code of a relay, at every 500th edit. CPU of the relay
is that of its process tree; times are means of 20 rounds.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from localstore.core.document.content import encode
from localstore.core.document.document import Document
from localstore.core.document.edit import HEAD_WRITER, Kept, plan, work_out
from localstore.core.model.document import DocumentCreate
from localstore.core.model.limits import DOCUMENT_UPDATES
from localstore.documents import FILE, LocalDocuments
from scripts.bench.shared.cpu import Cost, run, serving
from scripts.bench.shared.servers import relay_in

EDITS, TASKS, WORDS, ROUNDS = 100_000, 40, 300, 20
Stored = list[tuple[Kept, int]]
"""The updates of a document, each with the number of the first edit in it."""


class Written(NamedTuple):
    """A document of many edits, as it is stored."""

    edits: int
    content: Any
    updates: Stored


def contents(edits: int, as_text: bool) -> Iterator[Any]:
    """The content after each of so many edits."""
    drawn, words = random.Random(1), [f"word{at}" for at in range(WORDS if as_text else TASKS)]
    for number in range(edits):
        words[drawn.randrange(len(words))] = f"w{number}"
        states = {f"task{at}": word for at, word in enumerate(words)}
        yield {"text": " ".join(words)} if as_text else states


def write(edits: int, as_text: bool) -> Written:
    """Make a document by so many edits."""
    document, updates, content = Document(HEAD_WRITER), list[tuple[Kept, int]](), {}
    for number, content in enumerate(contents(edits, as_text), 1):
        if number % DOCUMENT_UPDATES:
            operations = document.write(content)
        else:
            edit = plan(content, [update for update, _ in updates], number - 1, number)
            edited = work_out(edit)
            operations = edited.operations
            document.apply(operations)
            if edited.snapshot is not None:
                last, _ = updates[edit.joined - 1]
                updates[: edit.joined] = [(Kept(last.number, edited.snapshot), updates[0][1])]
        updates.append((Kept(number, operations), number))
    return Written(edits, content, updates)


def store(database: sqlite3.Connection, document: str, written: Written, created_at: object) -> None:
    """Put the updates of a document into a database in the place of its own; the tables of a relay and of a
    device have the same columns."""
    rows = [
        (document, update.number, first, max(0, first - 1), update.operations, created_at)
        for update, first in written.updates
    ]
    columns = "(document_id, number, first, base, operations, created_at)"
    with database:
        database.execute("DELETE FROM document_update WHERE document_id = ?", (document,))
        database.executemany(f"INSERT INTO document_update {columns} VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute(
            "UPDATE document SET head = ?, content = ? WHERE id = ?",
            (written.edits, encode(written.content), document),
        )
    database.close()


def show(what: str, cpu: float, wall: float) -> None:
    print(f"{what:<44} CPU {cpu * 1000:7.1f} ms   wall {wall * 1000:7.1f} ms", flush=True)


def mean(work: Callable[[], object]) -> tuple[float, float]:
    """(CPU, wall time) of this process for one round of work."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(ROUNDS):
        work()
    return (time.process_time() - cpu) / ROUNDS, (time.perf_counter() - wall) / ROUNDS


def measure_here(base: Path, written: Written) -> None:
    """Measure the operations themselves, and a document of this device."""
    operations: Sequence[bytes] = [update.operations for update, _ in written.updates]
    opened = Document(HEAD_WRITER, operations).content()
    if opened != written.content:
        raise SystemExit("the document is not what was written")
    show("its operations read and applied", *mean(lambda: Document(HEAD_WRITER, operations).content()))
    place = LocalDocuments(base / FILE)
    document = place.create(DocumentCreate(title="Many", mode=1, content={})).id
    place.close()
    store(sqlite3.connect(base / FILE), document, written, "2026-01-01T00:00:00.000Z")
    place = LocalDocuments(base / FILE)
    show("document of a device, read", *mean(lambda: place.get(document)))
    place.close()
    environment = {**os.environ, "SVC_HOME": str(base)}
    viewing = [sys.executable, "-m", "svc", "doc", "view", document]
    costs = [run(viewing, base, environment) for _ in range(ROUNDS)]
    cpu, wall = sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs)
    show("svc doc view of it, with the start of svc", cpu / ROUNDS, wall / ROUNDS)


def measure_relay(base: Path, written: Written) -> None:
    with relay_in(base) as svc:
        address = svc.environment["SVC_SERVER"]
        (file,) = (base / "relay").rglob("relay.db")
        with httpx.Client(base_url=address, trust_env=False, timeout=60, headers={"Origin": address}) as http:
            http.post("/auth/guest-login").raise_for_status()
            body = {"title": "Many", "content": {}}
            document = http.post("/api/v1/documents", json=body).raise_for_status().json()["id"]
            store(sqlite3.connect(file), document, written, 0)
            path = f"/api/v1/documents/{document}"
            if http.get(path).raise_for_status().json()["content"] != written.content:
                raise SystemExit("the relay does not answer what was written")
            cost = Cost()
            with serving(svc.pid, cost):
                _, wall = mean(lambda: http.get(path).raise_for_status())
            show("GET", cost.cpu / ROUNDS, wall)
            edited = iter(range(ROUNDS))

            def change() -> None:
                content = {**written.content, "more": next(edited)}
                http.put(path, json={"content": content}).raise_for_status()

            cost = Cost()
            with serving(svc.pid, cost):
                _, wall = mean(change)
            show("PUT of one more edit", cost.cpu / ROUNDS, wall)


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
