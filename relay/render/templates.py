"""The templates of the pages. Compiling them takes half a second of CPU: a thread does it, once for each
process, so that other requests are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from localstore.core import words
from localstore.core.model import run
from localstore.core.paths import PROSE, terminal_safe

WARM_AFTER = 3.0  # seconds after `start`, as of the processes that render


class Templates:
    """Compiles all templates when the first page is requested, or some seconds after the start of the
    node."""

    def __init__(self) -> None:
        self._compiling: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    def start(self, after: float = WARM_AFTER) -> None:
        """Compile the templates `after` seconds from now, so that no reader waits for it."""
        self._warming = asyncio.create_task(self._warm(after))

    async def ready(self) -> None:
        """Wait until all templates are compiled."""
        if self._compiling is None:
            self._compiling = asyncio.create_task(asyncio.to_thread(_compile))
        if not self._compiling.done():
            await asyncio.shield(self._compiling)  # others wait for it too

    async def close(self) -> None:
        """Cancel the compilation that `start` planned, if it has not begun."""
        if self._warming is not None:
            self._warming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._warming

    async def _warm(self, after: float) -> None:
        await asyncio.sleep(after)
        await self.ready()


@cache
def environment() -> Environment:
    """The environment from which templates are taken, with the filters that they use."""
    environment = Environment(
        loader=PackageLoader("relay", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, run_state_of=run.state_of)
    environment.filters["minute"] = _to_minute
    environment.filters["readable"] = readable
    return environment


def readable(text: str) -> str:
    """A sentence that may contain a stranger's text, with characters escaped that could hide or reverse the
    words that follow."""
    return terminal_safe(text, PROSE)


def _compile() -> None:
    templates = environment()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)


def _to_minute(moment: str | None) -> str:
    """An RFC 3339 time for people, without seconds and zone; "never" for None."""
    return moment[:16].replace("T", " ") if moment else "never"
