"""What a worker is asked for."""

from __future__ import annotations

import msgspec

MARKDOWN_BYTES = 256 * 1024  # of a text that is rendered; longer ones are shown as they are
SOURCE_BYTES = 512 * 1024
SOURCE_LINES = 20_000


class Links(msgspec.Struct, frozen=True):
    """Where relative links of a text lead: addresses to which a path of the repository is added. `folder`:
    of the text itself, without a slash at its ends; `page`: of files and folders; `raw`: of images, empty:
    none is shown; `address`: of the repository's pages, for `#12`, empty: it is no link."""

    folder: str
    page: str
    raw: str
    address: str


class MarkdownJob(msgspec.Struct, frozen=True, tag="markdown"):
    text: str
    links: Links


class SourceJob(msgspec.Struct, frozen=True, tag="source"):
    """`name`: of the file, which says the language."""

    text: str
    name: str


Job = MarkdownJob | SourceJob


class Rendered(msgspec.Struct, frozen=True):
    """`html`: of a Markdown text one piece; of a source text one piece for each line. None: not rendered."""

    html: list[str] | None
