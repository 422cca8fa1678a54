"""The content of a document as the text of a file: a text unchanged, everything else as indented JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from localstore.core.document.content import encode
from localstore.core.errors import UsageError


def is_json(content: Any) -> bool:
    """Whether this content is shown and edited as JSON, because it is not a text."""
    return not isinstance(content, str)


def written(content: Any) -> str:
    """The content as the text of a file."""
    if not is_json(content):
        return str(content)
    return msgspec.json.format(encode(content), indent=2).decode() + "\n"


def parsed(text: str, json: bool) -> Any:
    """A document's content from the text of a file: the text itself, or the JSON value in it if `json`.
    Raises UsageError if that is not JSON."""
    if not json:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"this is not JSON: {error}") from None
