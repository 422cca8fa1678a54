"""Error messages for values that break the declaration of a struct's member.

The rule of a member is the description in its `msgspec.Meta`, else its type and bounds. The relay uses these
messages for request bodies, and the client uses them before it sends one.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from localstore.core.errors import Invalid

T = TypeVar("T", bound=msgspec.Struct)

_PLACE = re.compile(r" - at `\$(.*)`\Z")
_MISSING = re.compile(r"Object missing required field `(.*?)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`", re.DOTALL)
_ANY = "..."
NAME = 40  # characters of a member's name that are repeated
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def check_members(value: T) -> T:
    """Check the members of a struct and return it. Raises Invalid, with the relay's message, if a member
    breaks its declaration."""
    try:
        msgspec.convert(msgspec.to_builtins(value), type(value))
    except msgspec.ValidationError as error:
        raise refusal(error, type(value)) from None
    return value


def refusal(error: msgspec.ValidationError, shape: Any) -> Invalid:
    """The error for a value that does not fit the type `shape`: a JSON pointer to the wrong member, and a
    sentence with its rule."""
    message = str(error)
    place = _PLACE.search(message)
    steps = [name or index for name, index in _STEP.findall(place[1])] if place else []
    if unknown := _UNKNOWN.match(message):
        return _unknown(unknown[1], steps, _member(inspect.type_info(shape), steps))
    missing = _MISSING.match(message)
    if missing:
        steps.append(missing[1])
    named = steps[: steps.index(_ANY)] if _ANY in steps else steps  # msgspec does not name a dict's key
    pointer = "".join(f"/{step}" for step in named)
    name = ".".join(step for step in steps if step != _ANY) or "the body"
    if missing:
        return Invalid(f"{name} is missing", pointer=pointer)
    rule = _rule(_member(inspect.type_info(shape), steps))
    return Invalid(f"{name} is {rule}" if rule else message, pointer=pointer)


def _unknown(name: str, steps: list[str], kind: Any) -> Invalid:
    """The error for an unknown member of an object; it lists the known members."""
    match _bare(kind):
        case inspect.StructType(fields=fields):
            has = f"; it has {', '.join(field.encode_name for field in fields)}"
        case _:  # one of several kinds of objects
            has = ""
    pointer = "".join(f"/{step}" for step in [*steps, name[:NAME]] if step != _ANY)
    of = ".".join(step for step in steps if step != _ANY) or "the body"
    return Invalid(f"{of} has no member {name[:NAME]!r}{has}", pointer=pointer)


def _member(kind: Any, steps: list[str]) -> Any:
    """The type of a member inside the type `kind`; None if there is no such member. `steps`: the names and
    indices that lead to the member."""
    for step in steps:
        match _bare(kind):
            case inspect.StructType(fields=fields, array_like=True) if step.isdigit():
                kind = fields[int(step)].type
            case inspect.StructType(fields=fields):
                kind = next((field.type for field in fields if field.encode_name == step), None)
            case inspect.ListType(item_type=kind) | inspect.DictType(value_type=kind):
                pass
            case _:
                return None
    return kind


def _bare(kind: Any) -> Any:
    """A type without its descriptions and without None: for `A | None` the result is `A`."""
    match kind:
        case inspect.Metadata(type=inner):
            return _bare(inner)
        case inspect.UnionType(types=types):
            others = [member for member in types if not isinstance(member, inspect.NoneType)]
            return _bare(others[0]) if len(others) == 1 else kind
    return kind


def _rule(kind: Any) -> str:
    """The rule for values of a type, in words such as `1 to 64 characters`. "" if the type has no rule that
    can be said simply."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return str((extra or {}).get("description") or _rule(inner))
        case inspect.UnionType():
            return _rule(bare) if (bare := _without_none(kind)) is not None else ""
        case inspect.StrType(min_length=low, max_length=high):
            return f"{_span(low, high)} characters" if low or high else "a text"
        case inspect.ListType(min_length=low, max_length=high):
            return f"a list of {_span(low, high)} items" if low or high else "a list"
        case inspect.IntType(ge=low, le=high):
            return "a whole number" if low is None and high is None else _span(low, high)
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=values):
            *most, last = sorted(map(str, values))
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.StructType(array_like=False) | inspect.DictType():
            return "an object"
    return ""


def _without_none(kind: inspect.UnionType) -> Any:
    """The type `A` of `A | None`, with its description. None for a union of several other types."""
    others = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
    return others[0] if len(others) == 1 else None


def _span(low: int | None, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"{low} to {high}"
