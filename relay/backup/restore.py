"""Makes a node from a backup: a new data folder, an empty database, and an empty bucket if packs are in one.

Packs are restored first. Then the data folder appears as a whole. The rows are inserted last, in one
transaction, so that nothing can be served before all of them are there.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from localstore.core.errors import Invalid, Unavailable
from relay import migrations
from relay.backup import files, manifest, tables
from relay.backup.fill import fill
from relay.backup.manifest import OBJECTS, PRIVATE, BackupManifest, BackupPack
from relay.base import database_url as urls
from relay.base.folders import sync_folder
from relay.base.threads import run_on_thread
from relay.config import Storage
from relay.objects.backend import Packs
from relay.objects.packs import PackFiles
from relay.objects.place import open_packs

Say = Callable[[str], None]


def restore(backup: Path, storage: Storage, url: str, served: str, say: Say) -> BackupManifest:
    """Make a node from a backup, with `storage` as its data folder and packs. `url`: the URL with which
    `relay migrate` opens the database; `served`: the URL with which relays will open the database. Returns
    the manifest. Raises Invalid for an incomplete backup, or if the data folder, database or bucket is not
    empty, or the data folder is inside the backup."""
    contents = manifest.read(backup)
    if storage.data.resolve().is_relative_to(backup.resolve()):
        raise Invalid(f"{storage.data} is inside the backup {backup}; name a folder elsewhere")
    _require_nothing(storage.data, url, contents)
    making = storage.data.parent / f".{storage.data.name}.restoring"
    try:
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700, parents=True)
        _check(
            backup / contents.id / contents.database.path, contents.database.size, contents.database.blake3
        )
        asyncio.run(_restore_packs(backup, storage, making, contents))
        _restore_private(backup, making, contents)
        inside = not urls.is_postgres(url) and urls.sqlite_path(url).is_relative_to(storage.data)
        if inside:
            within = urls.sqlite_path(url).relative_to(storage.data)
            _restore_database(backup, contents, f"sqlite:///{making / within}")
        files.sync_folders(making)
        making.replace(storage.data)
        sync_folder(storage.data.parent)
        if not inside:
            _restore_database(backup, contents, url, served)
    except OSError as error:
        raise Unavailable(f"the restore failed: {files.reason(error)}") from None
    size = contents.size()
    say(f"{len(contents.packs)} packs, {size} bytes in all, are in place; data folder: {storage.data}")
    return contents


def _require_nothing(data: Path, url: str, contents: BackupManifest) -> None:
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise Invalid(f"{data} is not empty; a backup is restored into a folder of its own")
    if contents.revision > migrations.HEAD:
        raise Invalid(
            f"the backup is of schema {contents.revision}, this build knows {migrations.HEAD}; upgrade first"
        )
    if contents.revision < migrations.BASE:
        raise Invalid(
            f"the backup is of schema {contents.revision}, this build restores those of {migrations.BASE} "
            "and later; restore it with the version that made it, migrate that node and back it up anew"
        )
    if migrations.read_revision(url) is not None or (
        not urls.is_postgres(url) and urls.sqlite_path(url).exists()
    ):
        raise Invalid("the database of DATABASE_URL is not empty; a backup is restored into one of its own")


async def _restore_packs(backup: Path, storage: Storage, making: Path, contents: BackupManifest) -> None:
    """Restore the packs that the manifest `contents` lists. They go into the bucket, or into the folder
    `making`, which becomes the data folder when the restore is complete. Packs that an earlier attempt stored
    in the bucket are reused."""
    packs: Packs = PackFiles(making / OBJECTS) if storage.s3 is None else await open_packs(storage)
    try:
        expected = {pack.name: pack for pack in contents.packs}
        stored_sizes = {info.name: info.size async for info in packs.list_packs()}
        if strange := stored_sizes.keys() - expected:
            raise Invalid(
                f"the bucket holds packs that are not of this backup, {min(strange)} for one; "
                "name an empty bucket"
            )
        for pack in contents.packs:
            if stored_sizes.get(pack.name) != pack.size:
                await _restore_pack(backup / OBJECTS / pack.file, pack, packs)
    finally:
        await packs.close()


async def _restore_pack(source: Path, pack: BackupPack, packs: Packs) -> None:
    await run_on_thread(_check, source, pack.size, pack.blake3)
    await packs.adopt(pack.name, source)


def _restore_private(backup: Path, making: Path, contents: BackupManifest) -> None:
    for file in contents.private:
        source = backup / contents.id / PRIVATE / file.path
        _check(source, file.size, file.blake3)
        (making / file.path).parent.mkdir(mode=0o700, exist_ok=True)
        files.copy(source, making / file.path)


def _restore_database(backup: Path, contents: BackupManifest, url: str, served: str | None = None) -> None:
    fill(url, contents.revision, tables.read(backup / contents.id / contents.database.path), served)


def _check(path: Path, size: int, digest: str) -> None:
    if files.size_of(path) != size:
        raise Invalid(f"{path} is not the file of this backup: it should have {size} bytes")
    if files.digest_of(path) != digest:
        raise Invalid(f"{path} is damaged: its BLAKE3 is not the one in {manifest.MANIFEST}")
