"""The jobs that a render worker gets, and their results."""

from __future__ import annotations

import msgspec

MARKDOWN_BYTES = 256 * 1024  # of a text that is rendered; longer ones are shown as they are
SOURCE_BYTES = 512 * 1024
SOURCE_LINES = 20_000
HTML_CHARS = 2 * 1024 * 1024  # of a result; of 256 KiB of `#1` links of 6 MiB would be made


class Links(msgspec.Struct, frozen=True):
    """The addresses to which relative links of a text lead. A path in the repository is appended to them.
    `folder`: folder of the text, without slashes at its ends. `page`: address for files and folders. `raw`:
    address for images; if it is "", no images are shown. `address`: address of the repository's pages, for
    `#12`; if it is "", such numbers are no links."""

    folder: str
    page: str
    raw: str
    address: str


class MarkdownJob(msgspec.Struct, frozen=True, tag="markdown"):
    text: str
    links: Links


class SourceJob(msgspec.Struct, frozen=True, tag="source"):
    """A job to colour a source file. `name`: name of the file, from which the language is derived."""

    text: str
    name: str


Job = MarkdownJob | SourceJob


class Rendered(msgspec.Struct, frozen=True):
    """The result of a job. `html`: one piece for a Markdown text, or one piece for each line of a source
    text. It is None if the text was not rendered."""

    html: list[str] | None
