"""Rules of payloads. Single objects and large files are sent and received as bytes, by their digest."""

from __future__ import annotations

import asyncio

from localstore.core.encoding import digest as blake3_digest
from localstore.core.encoding import hex_digest, unhex
from localstore.core.errors import DigestMismatch, NotFound
from localstore.core.model.payload import ChunkedStored, PayloadStored
from relay.caller import View
from relay.capacity import quota
from relay.domain.storage import chunked
from relay.domain.storage.chunked import BYTES
from relay.domain.storage.pack import RequireNamed, require_plaintext
from relay.http.routing import Reply, Upload


async def put(view: View, name: str, upload: Upload) -> tuple[PayloadStored, bool]:
    """Store the body under `name`, its BLAKE3 in hex. Returns (answer, whether the payload is new to the
    repository)."""
    require_plaintext(view)
    digest = unhex(name)
    data = await upload.whole()
    if await asyncio.to_thread(blake3_digest, data) != digest:
        raise DigestMismatch(f"the body is not the payload {name[:12]}")
    await upload.finish()
    store = view.node.objects
    async with view.read() as tx:
        await quota.require(tx, view.repo.id, [(digest, len(data))], view.node.config.quota)
    placed = await store.place({digest: data}, view.repo.id)
    async with view.write() as tx:
        new = not await store.has_all(tx, view.repo.id, [digest])
        await store.admit(tx, placed, view.repo.id, [digest])
    return PayloadStored(blake3=name, size=len(data)), new


async def get(view: View, name: str, require_named: RequireNamed) -> Reply:
    """Send the payload's bytes. Raises NotFound if only other repositories have it. A digest does not say at
    which path a file is. So `require_named`, a function, raises an error if the caller has hidden paths and
    the payload is not a visible file of a seal."""
    require_plaintext(view)
    digest = unhex(name)
    await require_named([digest])
    store = view.node.objects
    located = await store.locate([digest], view.repo.id)
    if digest in located and not located[digest].directory:
        await view.lease.wait(located[digest].size)
        data = (await store.read_located([located[digest]]))[digest]
        return Reply(data, content_type=BYTES, etag=f'"{name}"')
    async with view.read() as tx:
        sizes = await chunked.find_sizes(tx, view.repo.id, [digest])
    if digest not in sizes:
        raise NotFound
    return chunked.reply(view, digest, sizes[digest])


async def put_manifest(view: View, name: str, upload: Upload) -> tuple[ChunkedStored, bool]:
    """Store the chunk manifest of the large file `name`. Result and errors are those of `chunked.put`."""
    require_plaintext(view)
    return await chunked.put(view, name, upload)


async def get_manifest(view: View, name: str, require_named: RequireNamed) -> Reply:
    """Send the chunk manifest of the large file `name`. `require_named`: a function that raises an error if
    the caller may not read the file."""
    require_plaintext(view)
    await require_named([unhex(name)])
    raw = await chunked.read_manifest(view, name)
    await view.lease.wait(len(raw))
    return Reply(raw, content_type="application/json", etag=f'"{hex_digest(raw)}"')
