"""Mentions: the handles in a text."""

from __future__ import annotations

import re

from localstore.core.limits import HANDLE_CHARS, MENTIONS

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NAMED = re.compile(rf"(?<![\w@/.`-])@([A-Za-z0-9](?:[A-Za-z0-9._-]{{0,{HANDLE_CHARS - 1}}}))")


def mentioned(text: str) -> list[str]:
    """The first MENTIONS handles that occur as @HANDLE outside of code, in lower case."""
    found: dict[str, None] = {}
    if "@" not in text:
        return []
    for match in _NAMED.finditer(_CODE.sub(" ", text)):
        found[match[1].rstrip("._-").lower()] = None
        if len(found) >= MENTIONS:
            break
    return list(found)


def added(before: str, after: str) -> dict[str, list[str]]:
    """What the event of an edit says of mentions that the text did not have before: data, empty for none."""
    known = set(mentioned(before))
    new = [handle for handle in mentioned(after) if handle not in known]
    return {"mentions": new} if new else {}
