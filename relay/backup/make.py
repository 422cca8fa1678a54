"""Makes a backup while relays serve.

The database is copied first and the packs second, because packs only grow while the collector is paused.
Renaming `manifest.json` into place completes the backup. Until then the files of an older backup are neither
changed nor deleted, so an interruption leaves it whole. The next attempt reuses the packs that were
copied.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from localstore.core.errors import Invalid, Unavailable
from relay import migrations
from relay.backup import files, tables
from relay.backup.manifest import (
    DATABASE,
    MANIFEST,
    OBJECTS,
    PRIVATE,
    VERSION,
    BackupManifest,
    BackupPack,
    SecretFile,
    read,
)
from relay.base import edition, own_folder
from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.base.threads import run_on_thread
from relay.db.engine.database import Database
from relay.db.storage import backup as statements
from relay.objects.backend import PackGone, Packs

LOCK = "backup.lock"
KEPT = ("signer.keys", "ssh_host_key", "secrets")  # of the data folder
Say = Callable[[str], None]


async def make(data: Path, db: Database, packs: Packs, target: Path, say: Say) -> BackupManifest:
    """Back a node up into the folder `target`, which is empty or holds an older backup. Packs that the folder
    holds already are reused. The caller pauses the collector. If the call is cancelled, the older backup
    stays whole. Raises Invalid for a target inside the data folder, and Unavailable when something cannot be
    read or written."""
    try:
        with _lock_folder(target, data):
            return await _make(data, db, packs, target, say)
    except OSError as error:
        raise Unavailable(f"the backup failed: {files.reason(error)}") from None


async def _make(data: Path, db: Database, packs: Packs, target: Path, say: Say) -> BackupManifest:
    older = read(target) if (target / MANIFEST).exists() else None
    earlier_packs = {pack.file: pack for pack in older.packs} if older else {}
    backup_id = new_id()
    (target / backup_id / PRIVATE).mkdir(mode=0o700, parents=True)
    (target / backup_id).chmod(0o700)
    (target / OBJECTS).mkdir(mode=0o700, exist_ok=True)
    pack_sizes, rows = await _copy_database(db, target / backup_id / DATABASE)
    say(f"the database is copied: {rows} rows")
    in_backup: list[BackupPack] = []
    copied = 0
    for name, size in pack_sizes:
        pack, fresh = await _copy_pack(packs, target / OBJECTS, name, size, earlier_packs)
        in_backup.append(pack)
        copied += fresh
    manifest = BackupManifest(
        v=VERSION,
        id=backup_id,
        made_at=now_ms(),
        version=edition.VERSION,
        revision=migrations.HEAD,
        database=await run_on_thread(_describe, target / backup_id, DATABASE),
        packs=in_backup,
        private=await run_on_thread(_copy_private, data, target / backup_id / PRIVATE),
    )
    await run_on_thread(_take_over, target, manifest)
    say(
        f"{len(in_backup)} packs, {manifest.size()} bytes in all, "
        f"{copied + manifest.database.size} of them new, are in {target}"
    )
    return manifest


async def _copy_database(db: Database, to: Path) -> tuple[list[tuple[str, int]], int]:
    """Copy all rows as of one moment. Returns (name and size of each pack that the rows refer to, number of
    rows)."""
    revision = await db.schema_version()
    if revision != migrations.HEAD:
        raise Invalid(
            f"the database is at revision {revision}, this build knows {migrations.HEAD}; "
            "back it up with the release that migrated it"
        )
    async with db.read(snapshot=True) as tx:
        rows = await tables.write(tx, to)
        return [(str(name), int(size)) for name, size in await tx.all(statements.PACKS)], rows


async def _copy_pack(
    packs: Packs, folder: Path, name: str, size: int, earlier_packs: dict[str, BackupPack]
) -> tuple[BackupPack, int]:
    """Copy a pack into the folder unless the folder has it. `earlier_packs`: the packs of the older backup by
    file name. Returns (pack, number of bytes copied). A file of the pack's final name and size is always
    complete, because it was renamed to that name after it was written."""
    pack = BackupPack(name, size, "")
    to = folder / pack.file
    if files.size_of(to) == size:
        return earlier_packs.get(pack.file) or BackupPack(
            name, size, await run_on_thread(files.digest_of, to)
        ), 0
    async with files.Writing(to) as writing:
        for offset in range(0, size, files.PIECE):
            try:
                (piece,) = await packs.read(name, [(offset, min(files.PIECE, size - offset))])
            except PackGone as error:
                raise Unavailable(
                    f"pack {name} is gone, or has less than {size} bytes; try again, or run: relay audit"
                ) from error
            await run_on_thread(writing.write, piece)
    return BackupPack(name, size, writing.digest()), size


def _copy_private(data: Path, to: Path) -> list[SecretFile]:
    copies = []
    for name in KEPT:
        place = data / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                relative = path.relative_to(data).as_posix()
                (to / relative).parent.mkdir(mode=0o700, exist_ok=True)
                files.copy(path, to / relative)
                copies.append(_describe(to, relative))
    return copies


def _describe(folder: Path, path: str) -> SecretFile:
    return SecretFile(path, files.size_of(folder / path), files.digest_of(folder / path))


@contextlib.contextmanager
def _lock_folder(target: Path, data: Path) -> Iterator[None]:
    """A context that locks the target folder, so that only one backup at a time is made in it. Raises Invalid
    for a folder that has other content or lies inside the data folder."""
    if target.resolve().is_relative_to(data.resolve()):
        raise Invalid(
            f"{target} is inside the data folder {data} and would be lost together with it; name a folder "
            "elsewhere, best on another disk"
        )
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()) and not (target / LOCK).exists():
        raise Invalid(f"{target} holds something else than backups; name an empty folder")
    target.chmod(0o700)
    with (target / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Invalid(f"another backup into {target} is under way") from None
        own_folder.mark(target)
        yield


def _take_over(target: Path, manifest: BackupManifest) -> None:
    """Make this backup the current one of the folder: rename its manifest into place, then delete files of
    the older one."""
    files.sync_folders(target)
    files.replace(target / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    _remove_others(target, manifest)


def _remove_others(target: Path, manifest: BackupManifest) -> None:
    pack_files = {pack.file for pack in manifest.packs}
    for path in target.iterdir():
        if path.is_dir() and path.name not in (manifest.id, OBJECTS):
            shutil.rmtree(path)
    for path in (target / OBJECTS).iterdir():
        if path.name not in pack_files:
            path.unlink()
