"""Checks that no acknowledged work is lost after relays were killed, for `scripts.relays.two_relays`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import select

from localstore.core import seal as seals
from localstore.core.model.live import UpdateAnswer
from relay.db.engine.database import Database
from relay.db.schema import tables
from relay.domain.live.live import decode_answer
from scripts.relays.people import SHARED, Ledger
from scripts.tour import StepFailed, TerminalDevice

_answer, _seal, _key = tables["update_answer"], tables["seal"], tables["device_key"]
EVENTS = select(tables["event"].c.id).where(tables["event"].c.repo_id.is_not(None))
ANSWERS = select(_answer.c.replica, _answer.c.n, _answer.c.answer)
SEALS = select(_seal.c.id, _seal.c.payload, _seal.c.signature, _key.c.ed25519).select_from(
    _seal.join(_key, _key.c.id == _seal.c.device_key_id)
)


async def database(db: Database, ledger: Ledger) -> list[str]:
    """Compare the database with the acknowledged work. Returns a line for each difference."""
    async with db.read(snapshot=True) as tx:
        answers = await tx.all(ANSWERS)
        ref = await tx.one(select(tables["ref"].c.seq, tables["ref"].c.head))
        seal_rows = await tx.all(SEALS)
        events = [row[0] for row in await tx.all(EVENTS)]
    assert ref is not None
    return [
        *_audit_updates({(row[0], row[1]): decode_answer(row[2]) for row in answers}, ref[0], ledger),
        *_audit_seals(seal_rows, ref[1], ledger),
        *_audit_events(events, ledger),
    ]


def _audit_updates(answers: dict[tuple[int, int], UpdateAnswer], last: int, ledger: Ledger) -> list[str]:
    faults = [
        f"update {key} was acknowledged as {seq} and is {answers[key].seq if key in answers else None}"
        for key, seq in ledger.updates.items()
        if key not in answers or answers[key].seq != seq
    ]
    line_counts = Counter(ledger.text)
    faults += [
        f"the line {word} is there {line_counts[word]} times"
        for word in ledger.words
        if line_counts[word] != 1
    ]
    faults += [f"the line {word} was refused and is there" for word in ledger.refused if line_counts[word]]
    numbers = Counter(answer.seq for answer in answers.values() if answer.result == "ok")
    faults += [f"number {seq} was given to {count} updates" for seq, count in numbers.items() if count > 1]
    if set(numbers) != set(range(1, last + 1)):
        faults.append(f"the branch counts {last} changes and {len(numbers)} are known")
    return faults


def _audit_seals(seal_rows: Any, head: str | None, ledger: Ledger) -> list[str]:
    parents: dict[str, str | None] = {}
    for seal_id, payload, signature, public in seal_rows:
        seals.verify(payload, signature, public)
        (parents[seal_id],) = seals.decode(payload).parents or (None,)
    chain = []
    while head is not None:
        chain.append(head)
        head = parents[head]
    faults = [
        f"seal {seal_id} was acknowledged and is not in the history" for seal_id in ledger.seals - set(chain)
    ]
    shared = [parent for parent, count in Counter(parents.values()).items() if count > 1]
    faults += [f"several seals have the parent {parent}" for parent in shared]
    if len(chain) != len(parents):
        faults.append(f"there are {len(parents)} seals and {len(chain)} in the history")
    return faults


def _audit_events(events: list[int], ledger: Ledger) -> list[str]:
    faults = []
    for port, heard in ledger.heard.items():
        if missed := set(events) - set(heard):
            faults.append(f"the listener on port {port} missed {len(missed)} of {len(events)} events")
        if heard != sorted(set(heard)):
            faults.append(f"the listener on port {port} heard events twice or out of order")
    return faults


def clone(folder: Path, port: int, repository: str) -> list[str]:
    """Clone with the real command, which verifies every seal and every byte. Returns a line for each
    fault."""
    device = TerminalDevice(f"auditor-{port}", folder, f"http://127.0.0.1:{port}")
    device.folder.parent.mkdir(parents=True)
    target = str(device.folder)
    try:
        device.svc("login", "--device-key", "--handle", f"auditor{port}")
        device.svc("repo", "clone", repository, target, where=device.folder.parent)
    except StepFailed as error:
        return [f"a clone from port {port} failed: {error}"]
    return [] if (device.folder / SHARED).exists() else [f"a clone from port {port} has no {SHARED}"]
