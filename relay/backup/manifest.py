"""The contents of a backup: `manifest.json`, renamed into place when all files are there."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import msgspec

from localstore.core.errors import Invalid
from relay.objects.packs import SUFFIX

MANIFEST, OBJECTS, DATABASE, PRIVATE = "manifest.json", "objects", "database", "private"
VERSION = 2


class SecretFile(msgspec.Struct, frozen=True):
    """A file with secrets of the node, such as the signer's key: its path below the data folder, size and
    BLAKE3."""

    path: str
    size: int
    blake3: str


class BackupPack(msgspec.Struct, frozen=True):
    """A pack of a backup. `size`: its length in bytes up to the last frame that the database refers to; the
    node's own pack may be longer. `blake3`: the digest of these bytes, as hex."""

    name: str
    size: int
    blake3: str

    @property
    def file(self) -> str:
        """The file name in `objects/` of a backup. It contains the size, because a pack may be longer in the
        next backup."""
        return f"{self.name}-{self.size}{SUFFIX}"


class BackupManifest(msgspec.Struct, frozen=True):
    """The manifest of a backup. `id`: name of the folder with the `database` and `private` files of this
    backup; `revision`: revision of the database's schema."""

    v: int
    id: str
    made_at: int
    version: str
    revision: str
    database: SecretFile
    packs: list[BackupPack]
    private: list[SecretFile]

    def size(self) -> int:
        """Size of all files of the backup in bytes."""
        sizes = [file.size for file in self.packs] + [file.size for file in self.private]
        return self.database.size + sum(sizes)


def read(backup: Path) -> BackupManifest:
    """Read the manifest of the backup in this folder. Raises Invalid for a folder without a manifest, and for
    one of another version."""
    try:
        raw = (backup / MANIFEST).read_bytes()
        version = msgspec.json.decode(raw, type=_Versioned).v
    except FileNotFoundError:
        raise Invalid(f"{backup} holds no whole backup: there is no {MANIFEST}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise Invalid(f"{backup / MANIFEST} cannot be read: {error}") from None
    if version != VERSION:
        raise Invalid(f"{backup} is a backup of version {version}, this build reads {VERSION}")
    try:
        manifest = msgspec.json.decode(raw, type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{backup / MANIFEST} cannot be read: {error}") from None
    _check_names(manifest)
    return manifest


class _Versioned(msgspec.Struct):
    v: int


def _check_names(manifest: BackupManifest) -> None:
    """Refuse names and paths that would touch anything outside of the backup and the new data folder."""
    for name in (manifest.id, *(pack.name for pack in manifest.packs)):
        if not (name.isascii() and name.isalnum()):
            raise Invalid(f"{MANIFEST} names {name!r}, which is not a valid name")
    for file in (manifest.database, *manifest.private):
        path = PurePosixPath(file.path)
        if path.is_absolute() or not path.parts or ".." in path.parts or len(path.parts) > 2:
            raise Invalid(f"{MANIFEST} names the path {file.path!r}, which lies outside of a data folder")
