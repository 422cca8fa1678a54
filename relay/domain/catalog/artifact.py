"""Artifacts (binary files) of a seal, as far as the caller sees them."""

from __future__ import annotations

from localstore.core.model.artifact import Artifact
from localstore.core.model.base import Page, PageQuery
from relay.caller import View
from relay.db.paging import Cursor, page_size
from relay.domain.history import sealed


async def page(view: View, seal_id: str, query: PageQuery) -> Page[Artifact]:
    """The binary files of a seal, sorted by path"""
    size, (after,) = page_size(query.limit), Cursor.read(query.cursor, "")
    seal = await sealed.seal(view, seal_id)
    view.node.streams.require(view.payer)
    items: list[Artifact] = []
    async for path, file in sealed.walk_files(view, seal.root):
        if file.kind not in ("blob", "chunked") or path <= after:
            continue
        if len(items) == size:
            return Page(items=items, next_cursor=Cursor.write(items[-1].path))
        items.append(Artifact(path=path, kind=file.kind, blake3=file.digest.hex(), size=file.size))
    return Page(items=items)
