"""Opens the configured store of packs."""

from __future__ import annotations

from relay.config import Storage
from relay.objects.backend import Packs
from relay.objects.packs import FOLDER, PackFiles


async def open_packs(storage: Storage) -> Packs:
    """Open the store of packs: files of the data folder, or the configured bucket. Raises StartRefused if the
    store cannot be used."""
    if storage.s3 is None:
        return PackFiles(storage.data / FOLDER)
    from relay.objects.s3 import S3Packs  # a large library that most nodes never load

    packs = S3Packs(storage.s3, storage.conditional_put)
    await packs.open(storage.owner)
    return packs
