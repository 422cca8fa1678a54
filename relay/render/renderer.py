"""Renders texts and caches the results, so that each version of a file is rendered only once.

Callers must have checked that the reader may see the text. Results are cached by the bytes of the text, so
repositories with the same file share them.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from localstore.core.encoding import digest
from localstore.core.model.limits import MIB
from relay.base.recent import Recent
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
from relay.render.workers import RenderWorkers

KEPT_BYTES = 32 * MIB
WARM_AFTER = 3.0  # seconds after `start`, when a node that lives on has done what its start asks for


class Renderer:
    """Renders texts in the background, and caches the results."""

    def __init__(self) -> None:
        self._workers = RenderWorkers()
        self._rendered: Recent[bytes, Rendered] = Recent(KEPT_BYTES, _weigh, KEPT_BYTES // 8)
        self._warming: asyncio.Task[None] | None = None

    def start(self, after: float = WARM_AFTER) -> None:
        """Start one render process after this number of seconds, so that the first reader does not wait for
        it to start."""
        self._warming = asyncio.create_task(self._warm(after))

    async def markdown(self, text: str, links: Links) -> str | None:
        """Render a Markdown text as HTML. Returns None if it is too long, or cannot be rendered in time."""
        if len(text) > MARKDOWN_BYTES:
            return None
        html = (await self._render(MarkdownJob(text, links))).html
        return html[0] if html else None

    async def source(self, text: str, name: str) -> list[str] | None:
        """Render the lines of a file of this name as HTML. Returns None if the text is too long, or cannot be
        rendered in time."""
        if len(text) > SOURCE_BYTES or text.count("\n") > SOURCE_LINES:
            return None
        return (await self._render(SourceJob(text, name))).html

    async def close(self) -> None:
        """Stop starting processes, and end the running ones."""
        if self._warming is not None:
            self._warming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._warming
        await self._workers.close()

    async def _warm(self, after: float) -> None:
        await asyncio.sleep(after)
        await self.source("warm = True\n", "warm.py")

    async def _render(self, job: Job) -> Rendered:
        key = digest(msgspec.msgpack.encode(job))
        if (cached := self._rendered.get(key)) is not None:
            return cached
        rendered = await self._workers.render(job)
        if rendered is None:  # the next reader may find a process
            return Rendered(None)
        self._rendered.put(key, rendered)
        return rendered


def _weigh(rendered: Rendered) -> int:
    """The approximate bytes of a result in memory."""
    return sum(map(len, rendered.html or ())) + 200
