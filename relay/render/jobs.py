"""The jobs that a worker gets, and their results."""

from __future__ import annotations

import msgspec

MARKDOWN_BYTES = 256 * 1024  # of a text that is rendered; longer ones are shown as they are
SOURCE_BYTES = 512 * 1024
SOURCE_LINES = 20_000
HTML_CHARS = 2 * 1024 * 1024  # of a result; of 256 KiB of `#1` links of 6 MiB would be made


class Links(msgspec.Struct, frozen=True):
    """Where relative links of a text lead: addresses to which a path in the repository is appended. `folder`:
    folder of the text, without slashes at its ends. `page`: for files and folders. `raw`: for images; ""
    shows none. `address`: the repository's pages, for `#12`; "" makes no links of numbers."""

    folder: str
    page: str
    raw: str
    address: str


class MarkdownJob(msgspec.Struct, frozen=True, tag="markdown"):
    text: str
    links: Links


class SourceJob(msgspec.Struct, frozen=True, tag="source"):
    """A source file to colour. `name`: name of the file, from which the language is derived."""

    text: str
    name: str


Job = MarkdownJob | SourceJob


class Rendered(msgspec.Struct, frozen=True):
    """The result of a job. `html`: one piece for a Markdown text, one piece for each line of a source text;
    None if it was not rendered."""

    html: list[str] | None
