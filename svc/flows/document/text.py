"""Converts the content of a document to the text of a file, and back. A text is unchanged; any other value
becomes indented JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from localstore.core.document.content import encode
from localstore.core.errors import UsageError


def is_json(content: Any) -> bool:
    """Return whether this content is shown and edited as JSON. That is so if it is not a text."""
    return not isinstance(content, str)


def format_content(content: Any) -> str:
    """Return the content as the text of a file."""
    if not is_json(content):
        return str(content)
    return msgspec.json.format(encode(content), indent=2).decode() + "\n"


def parse_content(text: str, json: bool) -> Any:
    """Return a document's content from the text of a file. It is the text itself or, if `json` is True, the
    JSON value in it. Raises UsageError if `json` is True and the text is not JSON."""
    if not json:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"this is not JSON: {error}") from None
