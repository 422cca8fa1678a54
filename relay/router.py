"""Which route a path means: a tree of segments, the static ones first, on the path as it was sent.

Sanic's router neither decodes nor distinguishes `/ok/` from `/ok`; here a path matches as written, `{name}`
takes one non-empty segment and `{name...}` the non-empty rest. Decoding is the gate's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
Params = dict[str, str]

_PARAMETER = re.compile(r"\{(\w+)(\.\.\.)?\}([^{}]*)")


@dataclass(slots=True)
class _Branch(Generic[T]):
    """A parameter segment, `{name}` and the literal text after it, as in `{sha}.tar.gz`."""

    name: str
    suffix: str
    below: _Place[T]


@dataclass(slots=True)
class _Place(Generic[T]):
    static: dict[str, _Place[T]] = field(default_factory=dict)
    branches: list[_Branch[T]] = field(default_factory=list)
    rest: dict[str, dict[str, T]] = field(default_factory=dict)  # parameter name → method → leaf
    here: dict[str, T] = field(default_factory=dict)  # method → leaf


class Router(Generic[T]):
    def __init__(self) -> None:
        self._root: _Place[T] = _Place()

    def add(self, method: str, path: str, leaf: T) -> None:
        """`path` as a route declares it. Two leaves for one method and shape are a mistake of ours."""
        place = self._root
        methods = None
        for segment in path.split("/")[1:]:
            found = _PARAMETER.fullmatch(segment)
            if found is None:
                place = place.static.setdefault(segment, _Place())
            elif found[2]:
                methods = place.rest.setdefault(found[1], {})
            else:
                place = _below(place, found[1], found[3])
        methods = place.here if methods is None else methods
        if method in methods:
            raise ValueError(f"{method} {path} is declared twice")
        methods[method] = leaf

    def find(self, path: str) -> Iterator[tuple[dict[str, T], Params]]:
        """The leaves by method at every place that matches, the most literal one first."""
        if path.startswith("/"):
            yield from _walk(self._root, path.split("/")[1:], {})


def _below(place: _Place[T], name: str, suffix: str) -> _Place[T]:
    for branch in place.branches:
        if (branch.name, branch.suffix) == (name, suffix):
            return branch.below
    branch = _Branch[T](name, suffix, _Place())
    place.branches.append(branch)
    place.branches.sort(key=lambda b: -len(b.suffix))
    return branch.below


def _walk(place: _Place[T], segments: Sequence[str], params: Params) -> Iterator[tuple[dict[str, T], Params]]:
    if not segments:
        if place.here:
            yield place.here, params
        return
    first, rest = segments[0], segments[1:]
    if first in place.static:
        yield from _walk(place.static[first], rest, params)
    for branch in place.branches:
        value = first.removesuffix(branch.suffix)
        if value and first.endswith(branch.suffix):
            yield from _walk(branch.below, rest, {**params, branch.name: value})
    if first:
        for name, methods in place.rest.items():
            yield methods, {**params, name: "/".join(segments)}


def parameters(path: str) -> tuple[str, ...]:
    """Names of the parameters of a declared path, in order."""
    return tuple(match[1] for match in _PARAMETER.finditer(path))


def allowed(methods: Iterable[str]) -> str:
    """The value of the Allow header."""
    return ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
