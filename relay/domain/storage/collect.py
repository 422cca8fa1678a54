"""The collector: deletes objects to which nothing referred for a day, then reclaims their space in packs.

First it marks every object to which something refers. An object to which something refers only later is safe
too. Every transaction that refers to an object sets its time `last_seen` first (`ObjectStore.touch`), and
only objects that were not seen for the grace time are deleted.

Large files are deleted first, so that the chunks of the remaining ones can be marked. Then the rows that give
repositories access to objects are deleted, and after them the objects. So a client that asks which objects a
repository has is never told of a deleted object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from localstore.core.model.limits import GC_GRACE
from relay.base.clock import now_ms
from relay.caller import repo_name
from relay.capacity import quota
from relay.db.engine.database import Database
from relay.db.storage import chunked_file as large_files
from relay.db.storage import collect as rows
from relay.domain.storage import chunked, roots
from relay.objects.compact import Freed, compact
from relay.objects.marks import Marks
from relay.objects.store import STALE_TOUCH, ObjectStore

GRACE = GC_GRACE * 1000 + STALE_TOUCH  # milliseconds; within STALE_TOUCH a touch may be skipped
PAGE = 5000
Say = Callable[[str], None]


@dataclass(slots=True)
class Unreferenced:
    """The objects to which nothing refers: their number, and their bytes before compression."""

    marked: int = 0
    objects: int = 0
    bytes: int = 0


async def collect(
    db: Database,
    store: ObjectStore,
    say: Say,
    *,
    dry_run: bool = False,
    grace: int = GRACE,
    quiet: int = GRACE,
    pause: float = 0,
) -> tuple[Unreferenced, Freed]:
    """Run the collector once. Returns (unreferenced objects, freed space). `say` receives a line for each
    step; `dry_run` deletes nothing.

    `grace`: milliseconds for which an unreferenced object is kept after it was last seen. `quiet`:
    milliseconds for which a pack is left alone after it was written. `pause`: seconds to wait for readers of
    rewritten packs before the old packs are deleted. If several processes share the database, the next run
    deletes them. Raises Unavailable if a tree cannot be read.
    """
    began = now_ms()
    marks = Marks()
    try:
        await roots.mark(db, store, marks)
        large = await _drop_large(db, marks, began - grace, dry_run)
        async for batch in chunked.list_all(db, store):
            await marks.add(batch)
        unreferenced = Unreferenced(marked=marks.count())
        say(f"{unreferenced.marked} objects are referred to")
        if not dry_run:
            await _drop_scopes(db, marks, began - grace)
        await _drop_objects(db, marks, began - grace, unreferenced, dry_run)
    finally:
        marks.close()
    verb = "could go" if dry_run else "went"
    say(f"{unreferenced.objects} objects of {unreferenced.bytes} bytes {verb}")
    if large:
        say(f"{large} unreferenced large files {verb}")
    freed = Freed() if dry_run else await compact(db, store, began - quiet, pause)
    if not dry_run:
        say(f"{freed.rewritten} packs written anew, {freed.packs} of {freed.bytes} bytes deleted")
    return unreferenced, freed


async def _drop_scopes(db: Database, marks: Marks, cutoff: int) -> None:
    repo_id, digest = "", b""
    while True:
        async with db.read() as tx:
            page = await tx.all(
                rows.SCOPES, after_repo=repo_id, after_digest=digest, cutoff=cutoff, limit=PAGE
            )
        if not page:
            return
        repo_id, digest = str(page[-1][0]), bytes(page[-1][1])
        living = await marks.among(bytes(row[1]) for row in page)
        for of, group in groupby(page, key=lambda row: str(row[0])):
            dead = {name: int(row[2]) for row in group if (name := bytes(row[1])) not in living}
            if dead:
                async with db.write(repo_name(of)) as tx:
                    dropped = await tx.all(rows.DROP_SCOPES, repo_id=of, digests=sorted(dead), cutoff=cutoff)
                    size = sum(dead[bytes(row[0])] for row in dropped)
                    await quota.count(tx, of, -len(dropped), -size, None)


async def _drop_large(db: Database, marks: Marks, cutoff: int, dry_run: bool) -> int:
    """Delete large files to which no frontier, seal, prepared seal or asset of any repository refers. With
    `dry_run`, only counts them. Returns their number."""
    dropped, repo_id, digest = 0, "", b""
    while True:
        async with db.read() as tx:
            page = await tx.all(
                large_files.STALE, after_repo=repo_id, after_digest=digest, cutoff=cutoff, limit=PAGE
            )
        if not page:
            return dropped
        repo_id, digest = str(page[-1][0]), bytes(page[-1][1])
        living = await marks.among(bytes(row[1]) for row in page)
        for of, group in groupby(page, key=lambda row: str(row[0])):
            dead = [name for row in group if (name := bytes(row[1])) not in living]
            if dry_run:
                dropped += len(dead)
            elif dead:
                async with db.write(repo_name(of)) as tx:
                    dropped += await tx.run(large_files.DROP, repo_id=of, digests=dead, cutoff=cutoff)


async def _drop_objects(db: Database, marks: Marks, cutoff: int, counts: Unreferenced, dry_run: bool) -> None:
    after = b""
    while True:
        async with db.read() as tx:
            page = await tx.all(rows.OBJECTS, after=after, cutoff=cutoff, limit=PAGE)
        if not page:
            return
        after = bytes(page[-1][0])
        living = await marks.among(bytes(row[0]) for row in page)
        dead = {name: size for raw, size in page if (name := bytes(raw)) not in living}
        if not dead:
            continue
        gone = len(dead)
        if not dry_run:
            async with db.write() as tx:
                gone = await tx.run(rows.DROP_OBJECTS, digests=sorted(dead), cutoff=cutoff)
        counts.objects += gone
        counts.bytes += sum(dead.values())
