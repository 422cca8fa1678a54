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
    """The content that the text of a file stands for: the text itself, or its JSON value if `json`. Raises
    UsageError if it is not JSON then."""
    if not json:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"this is not JSON: {error}") from None
