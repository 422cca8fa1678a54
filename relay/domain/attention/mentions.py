"""Mentions: the handles in a text."""

from __future__ import annotations

import re

from localstore.core.model.limits import HANDLE_CHARS, MENTIONS

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NAMED = re.compile(rf"(?<![\w@/.`-])@([A-Za-z0-9](?:[A-Za-z0-9._-]{{0,{HANDLE_CHARS - 1}}}))")


def find_mentions(text: str) -> list[str]:
    """Find the handles that the text mentions as @HANDLE outside of code, in lower case. Returns the first
    MENTIONS of them."""
    handles: dict[str, None] = {}
    if "@" not in text:
        return []
    for match in _NAMED.finditer(_CODE.sub(" ", text)):
        handles[match[1].rstrip("._-").lower()] = None
        if len(handles) >= MENTIONS:
            break
    return list(handles)


def find_new_mentions(before: str, after: str) -> dict[str, list[str]]:
    """Find the handles that an edit newly mentions: they are in `after` and not in `before`. Returns them as
    data for the event of the edit, or {} if there are none."""
    mentioned_before = set(find_mentions(before))
    new = [handle for handle in find_mentions(after) if handle not in mentioned_before]
    return {"mentions": new} if new else {}
