"""The templates of the pages. Compiling them takes half a second of CPU. A thread does it, once for each
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

ALL = ("", "repository")  # the folders of templates; those of repositories use the others
WARM_AFTER = 3.0  # seconds after `start`, as of the processes that render


class Templates:
    """Compiles templates when the first page that needs them is requested, or some seconds after the start
    of the node."""

    def __init__(self) -> None:
        self._compiling: dict[str, asyncio.Task[None]] = {}
        self._warming: asyncio.Task[None] | None = None

    def start(self, after: float = WARM_AFTER) -> None:
        """Compile the templates `after` seconds from now, so that the first reader does not wait for it."""
        self._warming = asyncio.create_task(self._warm(after))

    async def ready(self, folders: tuple[str, ...] = ALL) -> None:
        """Wait until the templates of these folders are compiled."""
        for folder in folders:
            if folder not in self._compiling:
                self._compiling[folder] = asyncio.create_task(asyncio.to_thread(_compile, folder))
            if not self._compiling[folder].done():
                await asyncio.shield(self._compiling[folder])  # others wait for it too

    async def close(self) -> None:
        """Cancel the compilation that `start` has planned, unless it has begun."""
        if self._warming is not None:
            self._warming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._warming

    async def _warm(self, after: float) -> None:
        await asyncio.sleep(after)
        await self.ready()


@cache
def make_environment() -> Environment:
    """Make the environment from which templates are taken, with the filters that they use."""
    environment = Environment(
        loader=PackageLoader("relay", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, run_state_of=run.state_of)
    environment.filters["minute"] = _to_minute
    environment.filters["readable"] = escape_unreadable
    return environment


def escape_unreadable(text: str) -> str:
    """Escape characters that could hide or reverse the words that follow. `text`: a sentence that may contain
    text of a stranger."""
    return terminal_safe(text, PROSE)


def _compile(folder: str) -> None:
    templates = make_environment()
    for name in templates.list_templates(extensions=["html"]):
        if name.rpartition("/")[0] == folder:
            templates.get_template(name)


def _to_minute(moment: str | None) -> str:
    """An RFC 3339 time in a form for people, without seconds and zone. "never" for None."""
    return moment[:16].replace("T", " ") if moment else "never"
