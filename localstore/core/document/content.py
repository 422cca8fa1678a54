"""The content of a document: any JSON value within limits of bytes, parts and depth, in a canonical form.

Yjs keeps no order of members and has only one kind of number, so members are sorted here, and a number
without a fraction is an int.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

from localstore.core.errors import Invalid, TooLarge
from localstore.core.model.limits import (
    DOCUMENT_BYTES,
    DOCUMENT_DEPTH,
    DOCUMENT_KEY_BYTES,
    DOCUMENT_PARTS,
    in_words,
)

EXACT = (1 << 53) - 1  # the largest integer that every reader of JSON holds

encode = msgspec.json.Encoder(order="sorted").encode


def check_content(content: Any) -> Any:
    """The content in its canonical form. Raises TooLarge if it exceeds a limit, Invalid for values that Yjs
    cannot store."""
    return to_canonical_json(content)[0]


def to_canonical_json(content: Any) -> tuple[Any, bytes]:
    """(the content in its canonical form, its JSON). Raises TooLarge if it exceeds a limit, Invalid for
    values that Yjs cannot store."""
    _check_parts(content)
    normal = normalize(content)
    json = encode(normal)
    if len(json) > DOCUMENT_BYTES:
        raise TooLarge(
            f"the content of a document has at most {in_words(DOCUMENT_BYTES)} of JSON; this has "
            f"{len(json)} bytes"
        )
    return normal, json


def normalize(value: Any) -> Any:
    """A JSON value with its members sorted and whole numbers as int. The caller has checked its depth."""
    if isinstance(value, dict):
        return {key: normalize(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [normalize(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        return float(value)
    return value


def is_text(value: str) -> bool:
    """Whether a string is edited character by character, which is so if it contains white space. Any other
    string is a word and changes as a whole. For example, if two people set a state to `open` and to `done`,
    the result must be one of the two."""
    return any(character.isspace() for character in value)


def _check_parts(content: Any) -> None:
    """Raise if the content has too many parts, is too deep, or has keys, numbers or characters that are not
    allowed. Works without recursion."""
    parts = 0
    todo = [(content, 0)]
    while todo:
        value, depth = todo.pop()
        parts += 1
        if depth > DOCUMENT_DEPTH:
            raise TooLarge(f"the content of a document nests at most {DOCUMENT_DEPTH} levels")
        if isinstance(value, dict):
            for key in value:
                _check_key(key)
            children = list(value.values())
        elif isinstance(value, list):
            children = value
        else:
            _check_scalar(value)
            continue
        if parts + len(todo) + len(children) > DOCUMENT_PARTS:
            raise TooLarge(
                f"the content of a document has at most {DOCUMENT_PARTS} values; put texts into fewer of them"
            )
        todo += [(child, depth + 1) for child in children]


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise Invalid("the members of a document's content have names", pointer="/content")
    _check_characters(key)
    if len(key.encode()) > DOCUMENT_KEY_BYTES:
        raise TooLarge(f"the name of a member has at most {DOCUMENT_KEY_BYTES} bytes")


def _check_scalar(value: Any) -> None:
    if isinstance(value, str):
        _check_characters(value)
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if abs(value) > EXACT:
            raise Invalid(
                f"whole numbers of a document lie within ±{EXACT}; write a larger one as text",
                pointer="/content",
            )
    elif not isinstance(value, float) or not isfinite(value):
        raise Invalid("the content of a document is JSON", pointer="/content")


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("a text of the document holds half of a surrogate pair", pointer="/content") from None
