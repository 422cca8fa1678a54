"""Refuses values that no database column can store: NUL in text, and integers beyond 64 bits."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from localstore.core.errors import Invalid

# Texts that need the full check. Each alternative begins with one character, which the regex finds fast.
_SUSPECT = [re.compile(before + rb"\s*-?[0-9]{19}") for before in (b":", b",", rb"\[")]


def require_storable_json(text: bytes) -> None:
    """Raise Invalid if the values of a JSON text are not storable (`require_storable`)."""
    if b"\\u0000" in text or any(suspect.search(text) for suspect in _SUSPECT):
        require_storable(msgspec.json.decode(text))


def require_storable(value: Any) -> None:
    """Raise Invalid for NUL in text and for integers beyond 64 bits."""
    if isinstance(value, dict):
        for key, item in value.items():
            require_storable(key)
            require_storable(item)
    elif isinstance(value, list):
        for item in value:
            require_storable(item)
    elif isinstance(value, str):
        if "\0" in value:
            raise Invalid("a text contains a NUL character")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Invalid("a number does not fit into 64 bits")
