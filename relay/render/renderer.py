"""Renders texts and caches the results, so that a version of a file is rendered once.

Callers have decided that the reader may see the text. Results are cached by the bytes of the text, so
repositories with the same file share them."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from localstore.core.encoding import digest
from relay.render.jobs import (
    MARKDOWN_BYTES,
    SOURCE_BYTES,
    SOURCE_LINES,
    Job,
    Links,
    MarkdownJob,
    Rendered,
    SourceJob,
)
from relay.render.workers import Workers

KEPT_BYTES = 32 * 1024 * 1024


class Renderer:
    """Renders texts in the background. Results are cached, the newest last."""

    def __init__(self) -> None:
        self._workers = Workers()
        self._rendered: OrderedDict[bytes, tuple[Rendered, int]] = OrderedDict()
        self._bytes = 0

    async def markdown(self, text: str, links: Links) -> str | None:
        """The text as HTML; None if it is too long, or cannot be rendered in time."""
        if len(text) > MARKDOWN_BYTES:
            return None
        html = (await self._render(MarkdownJob(text, links))).html
        return html[0] if html else None

    async def source(self, text: str, name: str) -> list[str] | None:
        """The lines of a file of this name as HTML; None as in `markdown`."""
        if len(text) > SOURCE_BYTES or text.count("\n") > SOURCE_LINES:
            return None
        return (await self._render(SourceJob(text, name))).html

    async def close(self) -> None:
        await self._workers.close()

    async def _render(self, job: Job) -> Rendered:
        key = digest(msgspec.msgpack.encode(job))
        if key in self._rendered:
            self._rendered.move_to_end(key)
            return self._rendered[key][0]
        rendered = await self._workers.render(job)
        size = sum(map(len, rendered.html or ())) + 200
        if size <= KEPT_BYTES // 8 and key not in self._rendered:
            self._rendered[key] = (rendered, size)
            self._bytes += size
            while self._bytes > KEPT_BYTES:
                _, (_, freed) = self._rendered.popitem(last=False)
                self._bytes -= freed
        return rendered
